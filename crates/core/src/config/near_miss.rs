//! Guesses which known key an unknown one was meant to be.
//!
//! Owns the guess only; what an unknown key costs is said where it is read.

/// What other MCP clients call a key of ours.
const FOREIGN: [(&str, &str); 8] = [
    ("autoStart", "enabled"),
    ("cmd", "command"),
    ("disabled", "enabled"),
    ("endpoint", "url"),
    ("environment", "env"),
    ("httpUrl", "url"),
    ("serverUrl", "url"),
    ("timeout", "tool_call_timeout"),
];

/// The known key that `key` resembles, if one does.
pub(super) fn meant<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let plain = plain(key);
    let foreign = FOREIGN.iter().find(|(other, _)| self::plain(other) == plain).map(|(_, ours)| *ours);
    if let Some(ours) = foreign.and_then(|ours| known.iter().find(|key| **key == ours)) {
        return Some(ours);
    }
    let closest = known.iter().map(|known| (distance(&plain, &self::plain(known)), *known)).min()?;
    (closest.0 <= tolerance(&plain)).then_some(closest.1)
}

/// Lower case without separators: `toolNamePrefix` and `tool-name-prefix` are `tool_name_prefix` spelt otherwise.
fn plain(key: &str) -> String {
    key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(64).collect()
}

/// How many slips make a likely typo; in a short word even one makes another word.
fn tolerance(plain: &str) -> usize {
    match plain.chars().count() {
        0..=2 => 0,
        3..=7 => 1,
        _ => 2,
    }
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 6] = ["args", "command", "enabled", "env", "tool_name_prefix", "url"];

    #[test]
    fn typos_other_spellings_and_foreign_names_are_recognised() {
        for (key, ours) in [
            ("comand", "command"),
            ("evn", "env"),
            ("arg", "args"),
            ("toolNamePrefix", "tool_name_prefix"),
            ("disabled", "enabled"),
            ("serverUrl", "url"),
        ] {
            assert_eq!(meant(key, &KNOWN), Some(ours), "{key}");
        }
    }

    #[test]
    fn other_words_are_no_typos() {
        for key in ["", "x", "icon", "autoApprove", "timeout", "$schema"] {
            assert_eq!(meant(key, &KNOWN), None, "{key}");
        }
    }
}
