//! Caribou's actors and its public verbs.
//!
//! Owns who talks to which upstream session and when; does not speak MCP, HTTP or SQL: those stand behind the traits
//! of `caribou-ports`. Embed it in a Rust agent by handing [`Runtime::start`] a connector; `examples/embed.rs` shows
//! the whole of it.

mod api;
mod catalog;
mod error;
mod metrics;
mod options;
mod roles;
mod session;
mod start;

pub use api::call_tool::{CallTool, CalledTool, SessionSeen};
pub use api::list_tools::{ListedTool, ListedTools};
pub use api::status::{ServerState, ServerStatus, SessionStatus};
pub use caribou_ports::mcp::{Progress, ProgressSink};
pub use error::{UpstreamError, VerbError};
pub use options::Options;
pub use start::{Outside, Runtime};
