//! The folders of threads below one root: `users/<user>/threads/<thread>/user-data/workspace`, with `.mcp/tmp` in it
//! for temporary files (contract 4.6).
//!
//! Created on first use, mode 0700. Nothing is ever deleted here: what a thread wrote stays until somebody removes it.
//! All of it blocks, so it runs on the threads that are made for that.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use caribou_core::ids::Scope;
use caribou_core::result::{AgentResult, Snapshot};
use caribou_core::session::thread_folder;
use caribou_ports::BoxFuture;
use caribou_ports::workspace::{ThreadFolder, ThreadFolderError, ThreadFolders, Told};
use tokio::task::spawn_blocking;

use crate::thread_files::ThreadFiles;

/// Folders below one root.
pub struct FoldersBelow {
    root: PathBuf,
    virtual_prefix: String,
}

impl FoldersBelow {
    /// Folders below `root`, an absolute path that need not exist yet. An agent knows the tree of its thread as
    /// `virtual_prefix`, an absolute path without a slash at its end, such as `/mnt/user-data`.
    pub fn new(root: PathBuf, virtual_prefix: impl Into<String>) -> Self {
        Self { root, virtual_prefix: virtual_prefix.into() }
    }

    fn files(&self, scope: &Scope) -> ThreadFiles {
        ThreadFiles::new(self.root.join(thread_folder(scope)).join("user-data"), self.virtual_prefix.clone())
    }
}

impl ThreadFolders for FoldersBelow {
    fn prepare(&self, scope: &Scope) -> BoxFuture<'static, Result<ThreadFolder, ThreadFolderError>> {
        let workspace = self.files(scope).workspace();
        Box::pin(async move {
            let failed_at = workspace.clone();
            let stopping = |_| failed(&failed_at, "the replica is stopping");
            spawn_blocking(move || prepare(workspace)).await.map_err(stopping)?
        })
    }

    fn snapshot(&self, scope: &Scope) -> BoxFuture<'static, Snapshot> {
        let files = self.files(scope);
        Box::pin(async move { spawn_blocking(move || files.snapshot()).await.unwrap_or_default() })
    }

    fn translate(&self, scope: &Scope, told: Told) -> BoxFuture<'static, Option<AgentResult>> {
        let files = self.files(scope);
        Box::pin(async move { spawn_blocking(move || files.translate(told)).await.ok() })
    }
}

fn prepare(workspace: PathBuf) -> Result<ThreadFolder, ThreadFolderError> {
    let create = |path: &Path| {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|error| failed(path, &error.to_string()))
    };
    create(&workspace)?;
    let temp = workspace.join(".mcp").join("tmp");
    let temp = create(&temp).map(|()| temp);
    Ok(ThreadFolder { workspace, temp })
}

fn failed(path: &Path, reason: &str) -> ThreadFolderError {
    ThreadFolderError { path: path.display().to_string(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn below(root: &Path) -> FoldersBelow {
        FoldersBelow::new(root.to_owned(), "/mnt/user-data")
    }

    #[tokio::test]
    async fn a_folder_is_made_once_for_its_owner_only() {
        // Contract 4.6.
        let root = tempfile::tempdir().unwrap();
        let folders = below(root.path());
        let scope = Scope::new(Some("ann"), Some("t"));
        let folder = folders.prepare(&scope).await.unwrap();
        assert_eq!(folders.prepare(&scope).await.unwrap(), folder);
        for path in [&folder.workspace, folder.temp.as_ref().unwrap()] {
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
        }
        let other = folders.prepare(&Scope::new(Some("ann"), Some("u"))).await.unwrap();
        assert_ne!(other.workspace, folder.workspace);
    }

    #[tokio::test]
    async fn a_root_that_is_no_folder_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = below(file.path()).prepare(&Scope::new(None, None)).await.unwrap_err();
        assert!(error.to_string().contains(file.path().to_str().unwrap()));
    }

    #[tokio::test]
    async fn a_workspace_without_room_for_temporary_files_is_still_one() {
        // Contract 4.6.
        let root = tempfile::tempdir().unwrap();
        let folders = below(root.path());
        let scope = Scope::new(None, None);
        let workspace = folders.files(&scope).workspace();
        std::fs::create_dir_all(&workspace).unwrap();
        std::fs::write(workspace.join(".mcp"), "in the way").unwrap();
        let folder = folders.prepare(&scope).await.unwrap();
        assert_eq!(folder.workspace, workspace);
        assert!(folder.temp.unwrap_err().path.ends_with("/.mcp/tmp"));
    }

    #[tokio::test]
    async fn looking_creates_nothing() {
        // Contract 4.6.
        let root = tempfile::tempdir().unwrap();
        let folders = below(root.path());
        let scope = Scope::new(None, None);
        let before = folders.snapshot(&scope).await;
        assert_eq!(before.files.as_ref().map(|files| files.len()), Some(0));
        let told = Told { result: AgentResult::default(), cwd: None, before };
        assert!(folders.translate(&scope, told).await.is_some());
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
