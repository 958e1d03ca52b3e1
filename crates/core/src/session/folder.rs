//! Where the files of one user in one thread lie (contract 4.6).

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::ids::Scope;

/// Longer names are replaced by their hash: file systems take 255 bytes.
const LONGEST_NAME: usize = 120;

/// The folder of `scope`, relative to the root of all threads: `users/<user>/threads/<thread>`.
///
/// Different scopes never share a folder, whatever their names hold.
pub fn thread_folder(scope: &Scope) -> PathBuf {
    ["users", &file_name(scope.user.as_str()), "threads", &file_name(scope.thread.as_str())].iter().collect()
}

/// A name that is safe as one part of a path. Plain names stay readable; `%` opens an escape, so that no two names
/// become equal.
fn file_name(name: &str) -> String {
    if name.is_empty() {
        return "%".to_owned();
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.@".contains(&byte);
    let leading_dot = name.starts_with('.');
    let mut safe = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        if plain(byte) && !(leading_dot && at == 0) {
            safe.push(char::from(byte));
        } else {
            safe.push_str(&format!("%{byte:02X}"));
        }
    }
    if safe.len() <= LONGEST_NAME {
        return safe;
    }
    // `%` followed by a letter that is no hex digit never begins an escape.
    let hash: String = Sha256::digest(name.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("%x{hash}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Component;

    use super::*;

    #[test]
    fn a_plain_name_stays_readable() {
        let folder = thread_folder(&Scope::new(Some("ann@example.org"), Some("t-1")));
        assert_eq!(folder, PathBuf::from("users/ann@example.org/threads/t-1"));
    }

    #[test]
    fn no_name_leaves_its_folder_or_meets_another() {
        let long = "x".repeat(400);
        let odd = ["..", ".", "a/b", "a%2Fb", "a\\b", "a b", "", "grün", &long, &long[1..], "%x00", "A", "a"];
        let mut seen = HashSet::new();
        for name in odd {
            let folder = thread_folder(&Scope { user: name.into(), thread: "t".into() });
            let parts: Vec<_> = folder.components().collect();
            assert!(parts.iter().all(|part| matches!(part, Component::Normal(n) if n.len() < 255)), "{name}");
            assert!(seen.insert(folder), "{name}");
        }
    }
}
