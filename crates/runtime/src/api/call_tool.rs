//! Call one tool.

use std::time::Duration;

use caribou_core::ids::{BootId, Epoch, RequestId, Scope, ServerName};
use caribou_ports::mcp::ProgressSink;
use serde_json::value::RawValue;

/// One call as a caller asks for it.
pub struct CallTool {
    /// The visible name.
    pub name: String,
    /// The arguments, passed on as they are; absent stays absent.
    pub arguments: Option<Box<RawValue>>,
    /// For whom, in which thread.
    pub scope: Scope,
    /// The caller's own bound; the server's and the replica's bounds hold besides.
    pub timeout: Option<Duration>,
    /// Where progress goes.
    pub progress: Option<ProgressSink>,
    /// Names this request in logs and spans.
    pub request_id: RequestId,
}

/// What came back.
pub struct CalledTool {
    /// The server's `CallToolResult`, byte for byte.
    pub result: Box<RawValue>,
    /// The session that answered; `None` for servers that keep no session state.
    pub session: Option<SessionSeen>,
}

/// The session a call was answered by.
#[derive(Clone, Debug)]
pub struct SessionSeen {
    /// The server.
    pub server: ServerName,
    /// Which life of the session.
    pub epoch: Epoch,
    /// The replica that holds it.
    pub replica: BootId,
    /// Whether this is the first answer of this thread at this epoch after an earlier one: state was lost.
    pub restarted: bool,
}
