//! Arguments of `uvx` (contract 3.2, 3.3, 3.5; uv 0.11).
//!
//! Owns which words uvx reads as its own options: those before the tool. uvx evaluates no text, so only the long
//! names are looked for, as a tripwire for the day it does.

use super::policy::Refusal;

/// The options that would make uvx evaluate a text.
const CODE: [&str; 6] = ["--call", "--eval", "--print", "--shell", "--node-arg", "--node-options"];

/// The options that take the next word as their value; any other takes none.
const VALUED: [&str; 47] = [
    "--allow-insecure-host",
    "--build-constraints",
    "--cache-dir",
    "--color",
    "--config-file",
    "--config-setting",
    "--config-settings-package",
    "--constraints",
    "--default-index",
    "--directory",
    "--env-file",
    "--exclude-newer",
    "--exclude-newer-package",
    "--extra-index-url",
    "--find-links",
    "--fork-strategy",
    "--from",
    "--index",
    "--index-strategy",
    "--index-url",
    "--keyring-provider",
    "--link-mode",
    "--no-binary-package",
    "--no-build-isolation-package",
    "--no-build-package",
    "--no-sources-package",
    "--overrides",
    "--prerelease",
    "--project",
    "--python",
    "--python-platform",
    "--refresh-package",
    "--reinstall-package",
    "--resolution",
    "--torch-backend",
    "--upgrade-package",
    "--with",
    "--with-editable",
    "--with-requirements",
    "-C",
    "-P",
    "-b",
    "-c",
    "-f",
    "-i",
    "-p",
    "-w",
];

/// Looks at the options before the tool.
///
/// # Errors
/// The first that would evaluate a text.
pub(super) fn screen(args: &[&str]) -> Result<(), Refusal> {
    let mut words = args.iter().map(|word| word.trim());
    while let Some(word) = words.next() {
        if matches!(word, "--" | "-") || !word.starts_with('-') {
            break;
        }
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        if let Some(flag) = CODE.into_iter().find(|flag| flag.eq_ignore_ascii_case(name)) {
            return Err(Refusal::Flag(flag));
        }
        if VALUED.contains(&word) {
            words.next();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_listed_options_take_a_value() {
        // Contract 3.3 and 3.5: what stands behind the tool is the server's own.
        for valued in VALUED {
            assert_eq!(screen(&[valued, "value", "--eval", "text"]), Err(Refusal::Flag("--eval")), "{valued}");
            assert_eq!(screen(&[&format!("{valued}=value"), "tool", "--eval", "text"]), Ok(()), "{valued}");
        }
        for switch in ["-q", "--offline", "--unknown", "--FROM"] {
            assert_eq!(screen(&[switch, "tool", "--eval", "text"]), Ok(()), "{switch}");
        }
    }

    #[test]
    fn only_long_options_are_code_in_any_case_and_the_region_ends_at_the_tool() {
        // Contract 3.2 and 3.3.
        for flag in CODE {
            for word in [flag.to_owned(), flag.to_uppercase(), format!(" {flag} "), format!("{flag}=text")] {
                assert_eq!(screen(&[&word]), Err(Refusal::Flag(flag)), "{word}");
            }
            for end in ["--", "-", "tool"] {
                assert_eq!(screen(&[end, flag]), Ok(()), "{end} {flag}");
            }
        }
        assert_eq!(screen(&["-e", "tool"]), Ok(()));
    }
}
