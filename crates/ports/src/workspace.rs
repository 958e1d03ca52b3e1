//! Where the children of a thread keep their files (contract 4.6).

use std::path::PathBuf;

use caribou_core::ids::Scope;

use crate::BoxFuture;

/// Prepares the folder of a thread. Without one, children inherit Caribou's own working directory.
pub trait ThreadFolders: Send + Sync + 'static {
    /// The folder of `scope`, created if it is missing, readable by its owner only.
    fn prepare(&self, scope: &Scope) -> BoxFuture<'static, Result<ThreadFolder, ThreadFolderError>>;
}

/// The folder of one thread. All paths are absolute and exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadFolder {
    /// The working directory of a child whose configuration names none.
    pub workspace: PathBuf,
    /// Its temporary files.
    pub temp: PathBuf,
}

/// The folder cannot be made or used. Names the path and the reason.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the folder {path} of this thread cannot be used: {reason}; check `data_dir`")]
pub struct ThreadFolderError {
    /// The path that failed.
    pub path: String,
    /// What the system said.
    pub reason: String,
}
