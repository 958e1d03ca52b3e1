//! Which servers and sessions there are and how they are.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::era::Era;
use caribou_core::ids::{Epoch, Scope, ServerName};
use serde_json::value::RawValue;

/// How a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// Discovered; its tools are shown.
    Ready,
    /// Nobody asked for it yet.
    Unknown,
    /// Being discovered.
    Starting,
    /// The last discovery failed.
    Failed,
    /// Switched off in the configuration.
    Disabled,
    /// Left out because its configuration is wrong.
    Dropped,
}

impl ServerState {
    /// The word shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Unknown => "unknown",
            Self::Starting => "starting",
            Self::Failed => "failed",
            Self::Disabled => "disabled",
            Self::Dropped => "dropped",
        }
    }
}

/// One server.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    /// Its name.
    pub name: ServerName,
    /// `stdio`, `http` or `sse`; `None` when the configuration is too wrong to tell.
    pub transport: Option<&'static str>,
    /// How it is.
    pub state: ServerState,
    /// For how long it has been in this state.
    pub since: Duration,
    /// The era and revision last spoken.
    pub era: Option<(Era, String)>,
    /// The server's `Implementation` object.
    pub server_info: Option<Arc<RawValue>>,
    /// How many tools it shows.
    pub tools: usize,
    /// Live sessions with it.
    pub sessions: usize,
    /// Why it failed or was dropped, or what is odd about its list.
    pub last_error: Option<String>,
    /// Warnings about its tool list.
    pub warnings: Vec<String>,
    /// When a failed server may be started again.
    pub next_try: Option<Duration>,
    /// The last stderr lines of its latest child, secrets masked.
    pub stderr_tail: String,
}

/// One live session.
#[derive(Clone, Debug)]
pub struct SessionStatus {
    /// The server.
    pub server: ServerName,
    /// Whose it is.
    pub scope: Scope,
    /// Which life of the key.
    pub epoch: Epoch,
    /// Its child.
    pub pid: Option<u32>,
    /// The era and revision spoken.
    pub era: Option<(Era, String)>,
    /// Calls in flight.
    pub in_flight: usize,
    /// Since it was opened.
    pub age: Duration,
    /// Since it was last called.
    pub idle: Duration,
}
