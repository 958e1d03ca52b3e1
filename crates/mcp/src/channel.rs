//! One opened transport to a server, below the meaning of MCP.
//!
//! Owns what a transport must offer so that one session works over all of them: requests matched with their answers,
//! notices, a close that leaves nothing behind; and what every bring-up is given and how it is stopped. Knows no tool
//! and no handshake. A request is written at most once (invariant S2); when the transport ends every request in flight
//! fails at once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_core::config::{Secret, ServerConfig};
use caribou_ports::BoxFuture;
use caribou_ports::mcp::{CallError, Credentials, Disconnect, OpenError, SessionFacts, ToolListing};
use caribou_ports::workspace::ThreadFolder;
use serde_json::value::RawValue;
use tracing::warn;

use crate::era::memory::EraMemory;
use crate::parked::Asker;
use crate::server_asks::ServerAsks;
use crate::wire::progress::ProgressRoute;

/// One opened transport to a server.
pub(crate) trait Channel: Send + Sync + 'static {
    /// Sends one request and waits for its answer: the `result` as it came, or why there is none.
    ///
    /// `params` are complete: `_meta` with the progress token and the fields of the modern era stand in them already.
    /// Dropping the future cancels the request upstream, once, unless its answer has arrived or `extras` forbids it.
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Option<Box<RawValue>>,
        extras: RequestExtras,
    ) -> BoxFuture<'a, Result<Box<RawValue>, CallError>>;

    /// Sends one notification; resolves when it is written (stdio) or accepted (HTTP).
    fn notify<'a>(&'a self, method: &'a str, params: Option<Box<RawValue>>) -> BoxFuture<'a, Result<(), CallError>>;

    /// Looks at a complete tool list before it is passed on: modern HTTP notes which arguments are mirrored in headers
    /// and leaves out tools whose annotations are invalid (mcp.md §3.1).
    fn inspect(&self, _listing: &mut ToolListing) {}

    /// Sees to it that the server can tell what it likes, where that needs a stream of its own: a GET of the legacy
    /// era.
    fn keep_stream(&self) {}

    /// Closes the transport; see [`caribou_ports::mcp::Session::close`].
    fn close(&self) -> BoxFuture<'static, ()>;

    /// What whoever holds the session next goes on with it by; see [`caribou_ports::mcp::Session::resumption`].
    fn resumption(&self, _facts: &SessionFacts) -> Option<Secret> {
        None
    }

    /// Closes the transport, and not the session; see [`caribou_ports::mcp::Session::leave`].
    fn leave(&self) -> BoxFuture<'static, ()> {
        self.close()
    }

    /// Resolves when the transport ended by itself; see [`caribou_ports::mcp::Session::ended`].
    fn ended(&self) -> BoxFuture<'static, Disconnect>;

    /// The last lines of stderr, secrets masked; empty for remote servers.
    fn stderr_tail(&self) -> String {
        String::new()
    }

    /// The child's process id.
    fn pid(&self) -> Option<u32> {
        None
    }
}

/// What goes with a request beside its parameters.
#[derive(Clone, Debug)]
pub(crate) struct RequestExtras {
    /// Where progress goes; the token stands in `params` too.
    pub(crate) progress: Option<ProgressRoute>,
    /// The value that modern HTTP mirrors in `Mcp-Name`: the raw tool name of a `tools/call`.
    pub(crate) name: Option<Arc<str>>,
    /// Headers of this request alone, over HTTP.
    pub(crate) headers: Vec<(String, Secret)>,
    /// Whether giving the request up is told upstream. Never for requests that open a session (mcp.md §3.3).
    pub(crate) cancellable: bool,
    /// Whether the server may ask something in the middle of it, and whom.
    pub(crate) asker: Asker,
}

impl Default for RequestExtras {
    fn default() -> Self {
        Self { progress: None, name: None, headers: Vec::new(), cancellable: true, asker: Asker::None }
    }
}

impl RequestExtras {
    /// For requests that open a session: giving up is not told.
    pub(crate) fn opening() -> Self {
        Self { cancellable: false, ..Self::default() }
    }
}

/// A transport over which the handshake is done.
pub(crate) struct Opened {
    /// The transport.
    pub(crate) channel: Arc<dyn Channel>,
    /// What was learnt.
    pub(crate) facts: SessionFacts,
    /// Whether it is a session that somebody else held before.
    pub(crate) is_resumed: bool,
}

/// What a transport is opened for.
#[derive(Clone)]
pub(crate) struct Opening {
    /// The server.
    pub(crate) server: Arc<ServerConfig>,
    /// Whose session it is, for markers and logs.
    pub(crate) label: String,
    /// What every request of the session carries besides the configured headers; nothing for a child.
    pub(crate) credentials: Credentials,
    /// Where a child of this session keeps its files.
    pub(crate) folder: Option<ThreadFolder>,
    /// Whether to keep a standing stream for `list_changed` where the transport needs one for it.
    pub(crate) watch_lists: bool,
    /// What a session is gone on with by, if there is one.
    pub(crate) resume: Option<Secret>,
    /// Answers what the server asks, routes what it tells.
    pub(crate) asks: Arc<ServerAsks>,
    /// Which era the server spoke last.
    pub(crate) eras: Arc<EraMemory>,
    /// How long a probe for the era may go unanswered.
    pub(crate) era_probe: Duration,
    /// Bound of one message of this server, envelope included.
    pub(crate) max_message_bytes: usize,
    /// Told what the bring-up waits for, for the error when its time runs out.
    pub(crate) awaited: Arc<Awaited>,
}

/// What a bring-up waits for at the moment.
#[derive(Default)]
pub(crate) struct Awaited(Mutex<&'static str>);

impl Awaited {
    /// The bring-up now waits for `what`, as in "waited for {what}".
    pub(crate) fn now(&self, what: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    /// What it waits for.
    pub(crate) fn what(&self) -> &'static str {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a bring-up must not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its bound has passed.
    TimedOut(Duration),
    /// Nobody wants the session any more.
    Abandoned,
}

impl Stop {
    /// As the error of the bring-up, which names the server, the bound, what was waited for and the last lines of
    /// stderr (contract 4.5).
    pub(crate) fn into_open_error(self, opening: &Opening, stderr: &str) -> OpenError {
        let Self::TimedOut(left) = self else { return OpenError::Abandoned };
        // What was left of the bound when the bring-up began; people know the bound they configured.
        let bound = opening.server.session_init_timeout.unwrap_or(left).as_secs_f64();
        let (server, awaited) = (&opening.server.name, opening.awaited.what());
        warn!(%server, bound, awaited, "a session was not ready in time");
        let mut message = format!(
            "server `{server}` was not ready within its session_init_timeout of {bound} s: waited for {awaited}"
        );
        if !stderr.is_empty() {
            message.push_str("; last lines of its stderr:\n");
            message.push_str(stderr);
        }
        OpenError::Timeout { message }
    }
}
