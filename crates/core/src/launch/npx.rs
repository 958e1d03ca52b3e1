//! Arguments of `npx` (contract 3.2 to 3.4, and what npm 10 and 11 really read beyond them).
//!
//! Owns which words npx reads as options of its own, and which of these are code. Two readers see each command line,
//! and they disagree: npx rewrites what it knows and puts `--` before the first word that is no option; npm then reads
//! the result by rules of its own. So a word is screened if either of them may take it for an option, and a word is
//! skipped as the value of the one before it only if both do so:
//!
//! * any number of dashes makes an option (`-call`, `--c`), a prefix of its name may do (`--script-s`), a leading
//!   `no-` need not mean no (`--no-script-shell SHELL`), single letters may be joined (`-yc TEXT`);
//! * what follows `=` is read once more when it begins with a dash (`-y=-c TEXT`);
//! * a word that begins with a dash is never a value, but some options swallow even `--`: wherever one may have done
//!   so, npm takes every word of the line for an option if it looks like one.

use super::environment;
use super::policy::Refusal;

/// Options that are code or name an interpreter, and the length of the shortest prefix npm may take for each. npm
/// itself knows no `--eval`, `--print` and `--node-arg`: tripwires, whole words only.
const CODE: [(&str, usize); 7] = [
    ("--call", 3),
    ("--eval", 4),
    ("--print", 5),
    ("--shell", 5),
    ("--script-shell", 3),
    ("--node-arg", 8),
    ("--node-options", 3),
];

/// Letters that are options by themselves, and so may be joined behind one dash.
const LETTERS: &str = "?BCDEHLOPSacdfghlmnpqsvwy";

/// Options that take no value: 95 of the contract's 98. `-n`, `-no` and `-local` do take one: npx drops the word after
/// the first, and npm reads a `true` or `false` after what the other two stand for. `-p` is `--package` to npx.
const SWITCHES: [&str; 95] = [
    "--all",
    "--allow-same-version",
    "--audit",
    "--bin-links",
    "--commit-hooks",
    "--description",
    "--dev",
    "--diff-ignore-all-space",
    "--diff-name-only",
    "--diff-no-prefix",
    "--diff-text",
    "--dry-run",
    "--engine-strict",
    "--expect-results",
    "--force",
    "--foreground-scripts",
    "--format-package-lock",
    "--fund",
    "--git-tag-version",
    "--global",
    "--global-style",
    "--if-present",
    "--ignore-scripts",
    "--include-staged",
    "--include-workspace-root",
    "--install-links",
    "--json",
    "--legacy-bundling",
    "--legacy-peer-deps",
    "--link",
    "--long",
    "--offline",
    "--omit-lockfile-registry-resolved",
    "--optional",
    "--package-lock",
    "--package-lock-only",
    "--parseable",
    "--prefer-dedupe",
    "--prefer-offline",
    "--prefer-online",
    "--production",
    "--progress",
    "--provenance",
    "--read-only",
    "--rebuild-bundle",
    "--save",
    "--save-bundle",
    "--save-dev",
    "--save-exact",
    "--save-optional",
    "--save-peer",
    "--save-prod",
    "--shrinkwrap",
    "--sign-git-commit",
    "--sign-git-tag",
    "--strict-peer-deps",
    "--strict-ssl",
    "--timing",
    "--unicode",
    "--update-notifier",
    "--usage",
    "--version",
    "--versions",
    "--workspaces",
    "--workspaces-update",
    "--yes",
    "-?",
    "-B",
    "-D",
    "-E",
    "-H",
    "-O",
    "-P",
    "-S",
    "-a",
    "-d",
    "-dd",
    "-ddd",
    "-desc",
    "-f",
    "-g",
    "-h",
    "-help",
    "-iwr",
    "-l",
    "-porcelain",
    "-q",
    "-quiet",
    "-readonly",
    "-s",
    "-silent",
    "-v",
    "-verbose",
    "-ws",
    "-y",
];

/// A switch to npx, while npm takes the next word as its value, even the `--` that npx puts before the package.
const SWALLOWS: &str = "browser";

/// Looks at the options before the package, and at the command when a package is named beside it.
///
/// # Errors
/// The first option that is code, or a command that is.
pub(super) fn screen(args: &[&str], variables: &[&str]) -> Result<(), Refusal> {
    let mut names_package = variables.iter().any(|name| environment::npm_option(name).as_deref() == Some("package"));
    let mut reads_all = false;
    let mut rest = args.iter().copied().peekable();
    while let Some(word) = rest.next() {
        if word == "--" || !is_dashed(word) {
            let command = if word == "--" { rest.peek().copied() } else { Some(word) };
            if names_package && command.is_some_and(is_code) {
                return Err(Refusal::CommandWord);
            }
            if reads_all {
                continue;
            }
            break;
        }
        let option = innermost(word)?;
        names_package |= matches!(bare(option), "p" | "package");
        reads_all |= bare(option) == SWALLOWS || option != word;
        if option.contains('=') || SWITCHES.contains(&option) {
            continue;
        }
        if let Some(value) = rest.next_if(|next| *next == "--" || !is_dashed(next)) {
            reads_all |= value == "--";
        }
    }
    Ok(())
}

fn is_dashed(word: &str) -> bool {
    word.trim().starts_with('-')
}

/// The option that decides whether the next word is a value: the last of `-y=-C`.
///
/// # Errors
/// The first of them that is code.
fn innermost(word: &str) -> Result<&str, Refusal> {
    let mut option = word;
    loop {
        if let Some(flag) = code(bare(option)) {
            return Err(Refusal::Flag(flag));
        }
        match option.split_once('=') {
            Some((_, value)) if value.starts_with('-') => option = value,
            _ => return Ok(option),
        }
    }
}

/// The name of an option as npm looks it up: without dashes, value and `no-`.
fn bare(option: &str) -> &str {
    let name = option.split_once('=').map_or(option, |(name, _)| name);
    let mut name = name.trim().trim_start_matches('-');
    while let Some((no, rest)) = name.split_at_checked(3)
        && no.eq_ignore_ascii_case("no-")
    {
        name = rest;
    }
    name
}

fn code(name: &str) -> Option<&'static str> {
    if name == "e" {
        return Some("-e");
    }
    let long = name.to_ascii_lowercase();
    let names = |(flag, shortest): &(&str, usize)| long.len() >= *shortest && flag[2..].starts_with(&long);
    let flag = CODE.iter().find(|entry| names(entry)).map(|(flag, _)| *flag);
    flag.or_else(|| joins_call(name).then_some("-c"))
}

/// Whether npm reads `-c` among these letters. `--ca` is an option of its own.
fn joins_call(name: &str) -> bool {
    name.contains('c') && name != "ca" && name.chars().all(|letter| LETTERS.contains(letter))
}

/// Whether the shell that npx starts would read more than a name in this command.
fn is_code(command: &str) -> bool {
    !command.chars().all(|c| c.is_alphanumeric() || "@/._-+:".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_takes_no_value_and_every_other_option_does() {
        // Contract 3.3 and 3.4: what stands behind the package is the server's own.
        for switch in SWITCHES {
            assert_eq!(screen(&[switch, "package", "-c", "text"], &[]), Ok(()), "{switch}");
            assert_eq!(screen(&[switch, "-c", "text"], &[]), Err(Refusal::Flag("-c")), "{switch}");
        }
        for valued in ["-p", "-C", "-n", "--registry", "--unknown", "--YES"] {
            assert_eq!(screen(&[valued, "value", "-c", "text"], &[]), Err(Refusal::Flag("-c")), "{valued}");
            let joined = format!("{valued}=value");
            assert_eq!(screen(&[&joined, "package", "-c", "text"], &[]), Ok(()), "{joined}");
        }
    }
}
