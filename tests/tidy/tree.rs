//! The files of a tree, real or made up.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Folders that are made by tools, and by Caribou itself, and belong to nobody.
const MADE: [&str; 3] = ["target", ".git", ".caribou"];

/// Text files by path from the root, with `/` between the parts.
pub(crate) struct Tree(BTreeMap<String, String>);

impl Tree {
    /// The tree that these tests belong to.
    pub(crate) fn real() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the tree");
        let mut files = BTreeMap::new();
        read(root, "", &mut files);
        Self(files)
    }

    /// A made-up tree.
    pub(crate) fn of<const N: usize>(files: [(&str, &str); N]) -> Self {
        Self(files.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect())
    }

    /// All files.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// All Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// One file.
    pub(crate) fn file(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// The names at the top.
    pub(crate) fn top(&self) -> BTreeSet<&str> {
        self.0.keys().filter_map(|path| path.split('/').next()).collect()
    }
}

fn read(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("the tree can be read") {
        let entry = entry.expect("the tree can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.file_type().expect("the tree can be read").is_dir() {
            if !MADE.contains(&path.as_str()) {
                read(&entry.path(), &format!("{path}/"), files);
            }
        } else {
            // What is no text has no lines to look at, but it is there.
            files.insert(path, fs::read_to_string(entry.path()).unwrap_or_default());
        }
    }
}

/// Whether the whole file is a test.
pub(crate) fn is_test_file(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}

/// The file without its tests, and its tests.
pub(crate) fn parted<'t>(path: &str, text: &'t str) -> (&'t str, &'t str) {
    if is_test_file(path) {
        return ("", text);
    }
    text.find("#[cfg(test)]").map_or((text, ""), |at| text.split_at(at))
}

/// The words of a text: runs of letters, digits and underscores.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}
