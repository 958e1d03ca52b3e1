//! What a workspace holds at one moment, and what a call changed in it (contract 4.7).
//!
//! Owns the comparison; walking the folder is an adapter's. A snapshot that could not see everything says nothing
//! about changes: a name is only taken for a file when it is known to be the only one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Folders that are no work of an agent, left out at any depth: our own namespace (contract 4.6) and those that tools
/// fill by the thousand.
const RESERVED: [&str; 3] = [".mcp", ".git", "node_modules"];

/// Whether a folder of this name is left out of snapshots.
pub fn is_reserved_folder(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// The regular files below one folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// By path relative to the folder. `None` when not everything could be seen.
    pub files: Option<HashMap<PathBuf, Stamp>>,
}

/// What tells two states of one file apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Time of the last modification, in nanoseconds since 1970.
    pub mtime_ns: i128,
    /// Its size in bytes.
    pub size: u64,
}

impl Snapshot {
    /// Files that were created or modified since `before`, sorted. None when either saw only a part; a deletion is no
    /// change.
    pub fn changed_since(&self, before: &Self) -> Vec<&Path> {
        let (Some(now), Some(before)) = (&self.files, &before.files) else { return Vec::new() };
        let mut changed: Vec<&Path> = now
            .iter()
            .filter(|(path, stamp)| before.get(*path) != Some(*stamp))
            .map(|(path, _)| path.as_path())
            .collect();
        changed.sort_unstable();
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(files: &[(&str, i128, u64)]) -> Snapshot {
        let files =
            files.iter().map(|(path, mtime_ns, size)| (path.into(), Stamp { mtime_ns: *mtime_ns, size: *size }));
        Snapshot { files: Some(files.collect()) }
    }

    #[test]
    fn created_and_modified_files_are_changes_and_deleted_ones_are_not() {
        // Contract 4.7.
        let before = snapshot(&[("same", 1, 1), ("grown", 1, 1), ("touched", 1, 1), ("gone", 1, 1)]);
        let after = snapshot(&[("same", 1, 1), ("grown", 1, 2), ("touched", 2, 1), ("new/file", 1, 1)]);
        assert_eq!(after.changed_since(&before), ["grown", "new/file", "touched"].map(Path::new));
        assert!(before.changed_since(&before).is_empty());
    }

    #[test]
    fn a_snapshot_of_a_part_tells_no_change() {
        let whole = snapshot(&[("a", 1, 1)]);
        assert!(whole.changed_since(&Snapshot::default()).is_empty());
        assert!(Snapshot::default().changed_since(&whole).is_empty());
    }
}
