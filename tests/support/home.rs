//! One test's own folder. Removed when the test passed, kept and named when it failed.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder that belongs to one test.
#[derive(Debug)]
pub struct Home(Option<TempDir>);

impl Home {
    /// A new empty folder.
    pub fn new() -> Self {
        let folder =
            tempfile::Builder::new().prefix("caribou-test-").tempdir().expect("a temporary folder can be made");
        Self(Some(folder))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.as_ref().expect("a home lives until it is dropped").path()
    }

    /// A path inside; nothing is created.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file inside and answers with its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.join(name);
        std::fs::write(&path, text).expect("a file can be written into a test's own folder");
        path
    }
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(folder) = self.0.take()
            && std::thread::panicking()
        {
            eprintln!("kept for a look: {}", folder.keep().display());
        }
    }
}
