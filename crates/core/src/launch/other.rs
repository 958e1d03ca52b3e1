//! Arguments of a program that only the operator's allowlist lets in, such as `python` or `node` (contract 3.2).
//!
//! Nothing is known of its grammar: every argument is looked at, and letters behind one dash are taken apart.

use super::policy::Refusal;

/// The long options that evaluate a text; the short ones are `-c`, `-e` and `-p`.
const CODE: [&str; 6] = ["--call", "--eval", "--print", "--shell", "--node-arg", "--node-options"];

/// Looks at every argument.
///
/// # Errors
/// The first that would evaluate a text; of joined letters the first one.
pub(super) fn screen(args: &[&str]) -> Result<(), Refusal> {
    match args.iter().find_map(|word| code(word)) {
        Some(flag) => Err(Refusal::Flag(flag)),
        None => Ok(()),
    }
}

fn code(word: &str) -> Option<&'static str> {
    let name = word.split_once('=').map_or(word, |(name, _)| name).trim().to_ascii_lowercase();
    if name.starts_with("--") {
        return CODE.into_iter().find(|flag| *flag == name);
    }
    name.strip_prefix('-')?.chars().find_map(|letter| match letter {
        'c' => Some("-c"),
        'e' => Some("-e"),
        'p' => Some("-p"),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_is_looked_at_wherever_it_stands() {
        // Contract 3.2, any other command: trimmed, in any case, the part before `=`, letters taken apart.
        for (word, flag) in CODE.map(|flag| (flag, flag)).into_iter().chain([
            (" --EVAL=text", "--eval"),
            ("-E", "-e"),
            ("-c=text", "-c"),
            ("-Ip", "-p"),
            ("-xec", "-e"),
        ]) {
            assert_eq!(screen(&["script.py", "--", word]), Err(Refusal::Flag(flag)), "{word}");
        }
        assert_eq!(screen(&["-m", "server", "--evaluate", "--p", "-", "c", "-i=c"]), Ok(()));
    }
}
