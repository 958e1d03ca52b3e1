//! Where the children of a thread keep their files, and what those files are called for an agent (contract 4.6, 4.7).

use std::path::PathBuf;

use caribou_core::ids::Scope;
use caribou_core::result::{AgentResult, Snapshot};

use crate::BoxFuture;

/// The folders of threads. Without them, children inherit Caribou's own working directory and paths stay as they are.
pub trait ThreadFolders: Send + Sync + 'static {
    /// The folder of `scope`, created if it is missing, readable by its owner only.
    fn prepare(&self, scope: &Scope) -> BoxFuture<'static, Result<ThreadFolder, ThreadFolderError>>;

    /// What the workspace of `scope` holds now. Creates nothing; a workspace that does not exist is empty. Says that
    /// it did not see everything when there is more than is worth looking at, or when something cannot be read.
    fn snapshot(&self, scope: &Scope) -> BoxFuture<'static, Snapshot>;

    /// Writes references to files of `scope` as paths of the agent's own tree; nothing is copied. Only an existing
    /// regular file inside this thread's tree, links followed, has such a path; everything else stays as it is, whatever
    /// the system says about it. `None` when the replica is stopping.
    fn translate(&self, scope: &Scope, told: Told) -> BoxFuture<'static, Option<AgentResult>>;
}

/// What one call told, and what is known about the files it may speak of.
pub struct Told {
    /// Its result.
    pub result: AgentResult,
    /// The working directory its server was configured with; `None` = the workspace.
    pub cwd: Option<PathBuf>,
    /// What the workspace held before the call.
    pub before: Snapshot,
}

/// The folder of one thread. All paths are absolute and exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadFolder {
    /// The working directory of a child whose configuration names none.
    pub workspace: PathBuf,
    /// Its temporary files, or why there is no folder for them. An ordinary call goes on without, on the system's own;
    /// a durable one does not (contract 4.6).
    pub temp: Result<PathBuf, ThreadFolderError>,
}

/// The folder cannot be made or used. Names the path and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the folder {path} of this thread cannot be used: {reason}; check `threads.root`")]
pub struct ThreadFolderError {
    /// The path that failed.
    pub path: String,
    /// What the system said.
    pub reason: String,
}
