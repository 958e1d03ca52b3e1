//! The folders of threads below one root: `users/<user>/threads/<thread>/user-data/workspace`, with `.mcp/tmp` in it
//! for temporary files (contract 4.6).
//!
//! Created on first use, mode 0700. Nothing is ever deleted here: what a thread wrote stays until somebody removes it.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use caribou_core::ids::Scope;
use caribou_core::session::thread_folder;
use caribou_ports::BoxFuture;
use caribou_ports::workspace::{ThreadFolder, ThreadFolderError, ThreadFolders};

/// Folders below one root.
pub struct FoldersBelow {
    root: PathBuf,
}

impl FoldersBelow {
    /// Folders below `root`, an absolute path that need not exist yet.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }
}

impl ThreadFolders for FoldersBelow {
    fn prepare(&self, scope: &Scope) -> BoxFuture<'static, Result<ThreadFolder, ThreadFolderError>> {
        let workspace = self.root.join(thread_folder(scope)).join("user-data").join("workspace");
        Box::pin(async move {
            let temp = workspace.join(".mcp").join("tmp");
            let made = tokio::task::spawn_blocking(move || create(&temp).map(|()| temp)).await;
            match made {
                Ok(Ok(temp)) => Ok(ThreadFolder { workspace, temp }),
                Ok(Err(error)) => Err(failed(&workspace, &error.to_string())),
                Err(_) => Err(failed(&workspace, "the replica is stopping")),
            }
        })
    }
}

fn create(path: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn failed(path: &Path, reason: &str) -> ThreadFolderError {
    ThreadFolderError { path: path.display().to_string(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn a_folder_is_made_once_for_its_owner_only() {
        let root = tempfile::tempdir().unwrap();
        let folders = FoldersBelow::new(root.path().to_owned());
        let scope = Scope::new(Some("ann"), Some("t"));
        let folder = folders.prepare(&scope).await.unwrap();
        assert_eq!(folders.prepare(&scope).await.unwrap(), folder);
        for path in [&folder.workspace, &folder.temp] {
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
        }
        let other = folders.prepare(&Scope::new(Some("ann"), Some("u"))).await.unwrap();
        assert_ne!(other.workspace, folder.workspace);
    }

    #[tokio::test]
    async fn a_root_that_is_no_folder_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = FoldersBelow::new(file.path().to_owned()).prepare(&Scope::new(None, None)).await.unwrap_err();
        assert!(error.to_string().contains(file.path().to_str().unwrap()));
    }
}
