//! Who starts child processes and sees to it that they outlive nobody.
//!
//! Two implementations: the guard process of the `caribou` binary, whose children die with Caribou even on
//! SIGKILL, and plain children of this process for programs that embed the runtime.

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use caribou_core::failure::Class;
use serde::{Deserialize, Serialize};

use crate::BoxFuture;

/// Starts children, each as the leader of its own process group.
pub trait ChildHost: Send + Sync + 'static {
    /// Starts one child. The descriptors become its stdin, stdout and stderr.
    fn spawn(&self, launch: Launch) -> BoxFuture<'static, Result<HostedChild, SpawnError>>;
}

/// One child to start.
pub struct Launch {
    /// Whose it is (`server/user:thread`), set as `CARIBOU_SESSION` in its environment.
    pub session: String,
    /// Program and arguments; the program is looked up on the `PATH` of `env` when it holds no slash.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// Its working directory; `None` = inherited.
    pub cwd: Option<PathBuf>,
    /// Its stdin.
    pub stdin: OwnedFd,
    /// Its stdout.
    pub stdout: OwnedFd,
    /// Its stderr.
    pub stderr: OwnedFd,
}

/// A started child.
pub struct HostedChild {
    /// Process id of the group's leader, which is also the id of the group.
    pub pid: u32,
    /// Resolves once, when the leader has exited and was reaped.
    pub exited: BoxFuture<'static, Exit>,
    /// Ends the whole group.
    pub group: Box<dyn ChildGroup>,
}

/// The process group of one child. Dropping it ends the group in the background.
pub trait ChildGroup: Send + Sync {
    /// Sends SIGTERM to the group, waits up to `grace`, sends SIGKILL; resolves when no member is alive and all are
    /// reaped, also when the leader left long ago. May be called again; every call resolves.
    fn end(&self, grace: Duration) -> BoxFuture<'static, ()>;
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody can tell: whoever was to reap it died first.
    Lost,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Lost => f.write_str("unknown exit"),
        }
    }
}

/// Why a child was not started.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program does not exist, is not executable, or the working directory is missing. Names which.
    #[error("{0}")]
    NotStartable(String),
    /// The host of children itself is gone or out of resources.
    #[error("no child can be started now: {0}")]
    HostUnavailable(String),
}

impl SpawnError {
    /// What may be done about it.
    pub fn class(&self) -> Class {
        match self {
            Self::NotStartable(_) => Class::Invalid,
            Self::HostUnavailable(_) => Class::Retry,
        }
    }
}
