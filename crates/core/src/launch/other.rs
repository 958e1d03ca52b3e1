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
