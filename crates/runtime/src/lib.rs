//! Caribou's actors and its public verbs.
//!
//! Owns who talks to which upstream session and when; does not speak MCP, HTTP or SQL: those stand behind the traits
//! of `caribou-ports`. Embed it in a Rust agent by handing [`Runtime::start`] a connector; `examples/embed.rs` shows
//! the whole of it.

use std::sync::Arc;

use caribou_core::config::ServerEntry;
use caribou_core::ids::{BootId, Scope, ServerName};
use caribou_ports::mcp::Connector;

mod api;
mod error;
mod options;

pub use api::call_tool::{CallTool, CalledTool, SessionSeen};
pub use api::list_tools::{ListedTool, ListedTools};
pub use api::status::{ServerState, ServerStatus, SessionStatus};
pub use caribou_ports::mcp::{Progress, ProgressSink};
pub use error::{UpstreamError, VerbError};
pub use options::Options;

/// One running replica. Cheap to clone; all clones are the same replica.
#[derive(Clone)]
pub struct Runtime {}

#[expect(clippy::todo, missing_docs, reason = "signatures first; bodies follow before the first commit that serves")]
impl Runtime {
    pub async fn start(
        _servers: Vec<ServerEntry>,
        _options: Options,
        _connector: Arc<dyn Connector>,
        _boot: BootId,
    ) -> Result<Self, VerbError> {
        todo!()
    }
    pub fn boot(&self) -> &BootId {
        todo!()
    }
    pub async fn list_tools(&self) -> Result<ListedTools, VerbError> {
        todo!()
    }
    pub async fn call_tool(&self, _call: CallTool) -> Result<CalledTool, VerbError> {
        todo!()
    }
    /// How many were closed.
    pub async fn close_sessions(&self, _scope: &Scope, _server: Option<&ServerName>) -> Result<usize, VerbError> {
        todo!()
    }
    /// Ask these servers (all when `None`) for their tools again.
    pub async fn refresh_tools(&self, _server: Option<&ServerName>) -> Result<(), VerbError> {
        todo!()
    }
    pub async fn servers(&self) -> Vec<ServerStatus> {
        todo!()
    }
    pub async fn sessions(&self) -> Vec<SessionStatus> {
        todo!()
    }
    /// Close every session and end every actor; resolves when nothing is left.
    pub async fn stop(&self) {
        todo!()
    }
}
