//! Sessions with upstream MCP servers, whatever their transport and era.
//!
//! Payloads are raw JSON text end to end: nothing that is not understood is lost on the way (invariant W1).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::{Secret, ServerConfig};
use caribou_core::era::Era;
use serde_json::value::RawValue;

use crate::BoxFuture;
use crate::access_token::AccessTokens;
use crate::workspace::ThreadFolder;

mod errors;

pub use errors::{CallError, Disconnect, OpenError};

/// Opens sessions.
pub trait Connector: Send + Sync + 'static {
    /// Brings one session up: spawn or connect, find the era, shake hands. Resolves with an error only when
    /// everything half-made is gone again, so that whoever counts sessions may count it as gone.
    fn open(&self, request: OpenSession) -> BoxFuture<'static, Result<Arc<dyn Session>, OpenError>>;
}

/// What a session is opened for.
pub struct OpenSession {
    /// The server.
    pub server: Arc<ServerConfig>,
    /// Whose session it is (`server/user:thread`), for markers and logs.
    pub label: String,
    /// Where a child of this session keeps its files; `None` = it inherits our working directory.
    pub folder: Option<ThreadFolder>,
    /// Bound of the whole bring-up; `None` = unbounded.
    pub timeout: Option<Duration>,
    /// Resolves when nobody wants the session any more; the bring-up is then undone and ends `Abandoned`.
    pub abandoned: BoxFuture<'static, ()>,
    /// Whether to keep a standing stream for `list_changed` where the transport needs one for it.
    pub watch_lists: bool,
    /// What every request of the session carries besides the configured headers.
    pub credentials: Credentials,
    /// What the session tells on its own. Called from its tasks; must not block.
    pub events: EventSink,
    /// What [`Session::resumption`] gave of a session that nobody holds any more: it is gone on with if the server still
    /// keeps it, else another one is opened.
    pub resume: Option<Secret>,
}

/// What every request of one session carries besides the configured headers: initialize, list, call, stream, delete.
/// Laid over them in this order, one spelling on the wire (contract 8.1, 8.2). Nothing of it for a child process.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The tokens of the connection's OAuth chain, asked for each request; `None` = it has none.
    pub tokens: Option<Arc<dyn AccessTokens>>,
    /// Whether the session goes on without a token when there is none: discovery does (contract 7.4).
    pub is_token_optional: bool,
    /// Headers of the user, of the request's secrets and of interceptors; they name whom the session acts for.
    pub headers: Vec<(String, Secret)>,
}

/// Receives what a session tells on its own.
pub type EventSink = Arc<dyn Fn(SessionEvent) + Send + Sync>;

/// What a session tells on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// `notifications/tools/list_changed`.
    ToolsChanged,
    /// `notifications/prompts/list_changed`.
    PromptsChanged,
    /// `notifications/resources/list_changed`.
    ResourcesChanged,
    /// The server forgot the session and a new one was opened in its place: its state is lost. Told before the
    /// answer of the call that noticed.
    Reopened,
    /// A person has been where the server sent the caller: `notifications/elicitation/complete`, with the server's name of
    /// the visit. Told once of each, and only of what the server asked for in this session (mcp.md 14.3).
    Visited(Arc<str>),
    /// The server did something that the protocol does not allow, and that harms nobody. Told each time.
    Oddity(Oddity),
}

/// What servers do that the protocol does not allow, and that is put up with (mcp.md §3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Oddity {
    /// It sent something that is no JSON-RPC message, such as a log line on stdout; skipped.
    NotAMessage,
    /// It wrote the number that names our request as a string; accepted.
    TextId,
    /// It answered twice, or after its request was given up; dropped.
    LateAnswer,
    /// It answered a request that we never sent; dropped.
    UnknownAnswer,
}

impl Oddity {
    /// Its name as a label of metrics.
    pub fn kind(self) -> &'static str {
        match self {
            Self::NotAMessage => "not_a_message",
            Self::TextId => "text_id",
            Self::LateAnswer => "late_answer",
            Self::UnknownAnswer => "unknown_answer",
        }
    }
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAMessage => "it sends something else than JSON-RPC; skipped",
            Self::TextId => "it writes the ids of its answers as strings; accepted",
            Self::LateAnswer => "an answer came twice or after its request was given up; dropped",
            Self::UnknownAnswer => "an answer names no request of ours; dropped",
        })
    }
}

/// One live session.
pub trait Session: Send + Sync + 'static {
    /// What was learnt at bring-up.
    fn facts(&self) -> &SessionFacts;

    /// Calls one tool and answers with the server's `CallToolResult`, byte for byte.
    ///
    /// Dropping the future cancels the call upstream, once, unless its answer has arrived. Never repeats a call that
    /// may have been processed (invariant S2).
    fn call_tool(&self, call: ToolCall) -> BoxFuture<'_, Result<Box<RawValue>, CallError>>;

    /// Sends one request of the protocol beside the others here, and answers with its `result`, byte for byte. What is
    /// not in its `params` is written by the session: `_meta` of the era, for `tasks/...` of the modern era the extension
    /// too, and over HTTP the headers of the method.
    ///
    /// Dropping the future cancels the request upstream, once, unless its answer has arrived. Never repeats it.
    fn request(&self, request: RawRequest) -> BoxFuture<'_, Result<Box<RawValue>, CallError>>;

    /// What the server asks about one of its tasks, by requests of its own in the legacy era (mcp.md §9.1): those that
    /// are not answered yet. Has the session ask for the task's result, which is what the server puts its questions
    /// on, and waits a moment for the first. A question lives as long as the session that it was asked in.
    fn task_questions(&self, task_id: &str) -> BoxFuture<'_, Result<Vec<TaskQuestion>, CallError>>;

    /// Answers such a question with a result. False when there is none by this name, or no more.
    fn answer_task(
        &self,
        task_id: &str,
        question: &str,
        answer: Box<RawValue>,
    ) -> BoxFuture<'_, Result<bool, CallError>>;

    /// Whether a call waits here for whoever made it: its request is open, though nobody's call is.
    fn is_waited_for(&self) -> bool {
        false
    }

    /// Lists all tools, following cursors with the guards of architecture.md §9.
    fn list_tools(&self) -> BoxFuture<'_, Result<ToolListing, CallError>>;

    /// Closes the session. Resolves when nothing is left of it: the process group is gone and reaped, the remote
    /// session was asked to end. Calls in flight fail. May be called again.
    fn close(&self) -> BoxFuture<'static, ()>;

    /// What whoever holds this session next can go on with it by ([`OpenSession::resume`]), in place of opening another
    /// one: a remote server of the legacy era keeps it for whoever knows its id. `None` = nothing outlives this holder.
    fn resumption(&self) -> Option<Secret> {
        None
    }

    /// Whether it is the very session that [`OpenSession::resume`] told of.
    fn is_resumed(&self) -> bool {
        false
    }

    /// As [`Self::close`], but for whoever goes on with it the session stays: the server is not asked to end it.
    fn leave(&self) -> BoxFuture<'static, ()> {
        self.close()
    }

    /// Resolves when the session ended by itself (not by `close`), at once if it already has.
    fn ended(&self) -> BoxFuture<'static, Disconnect>;

    /// The last lines of stderr, secrets masked; empty for remote servers.
    fn stderr_tail(&self) -> String;
}

/// What was learnt when a session was brought up.
#[derive(Clone, Debug)]
pub struct SessionFacts {
    /// The era in use.
    pub era: Era,
    /// The revision in use.
    pub version: String,
    /// Whether the server keeps state for this session, so that it matters which one is used.
    pub stateful: bool,
    /// The child's process id.
    pub pid: Option<u32>,
    /// The server's `Implementation` object, if it gave one.
    pub server_info: Option<Arc<RawValue>>,
    /// The server's capabilities, if it gave any.
    pub capabilities: Option<Arc<RawValue>>,
}

/// Keys of [`ToolCall::meta`] and of the `_meta` of a [`RawRequest`] that the session writes elsewhere: what a caller
/// brings along so that the server can ask it something (mcp.md §4). A server of the modern era is told it; for one of the
/// legacy era, which asks by requests of its own, the session answers in the same words: a call whose server asks is
/// parked and answers `input_required`, and goes on when its state is brought back (mcp.md 14.7).
pub mod relayed {
    /// What the caller can be asked: declared beside what is configured.
    pub const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Who that is: `principal`, a string, and `modern`, whether a question that it did not declare is an error (mcp.md
    /// 14.3). No server is told.
    pub const CALLER: &str = "io.caribou/caller";
    /// Within an answer to a question of a server of the legacy era: the error object of a client that refuses it.
    pub const REFUSED: &str = "io.caribou/refused";
    /// A member of the answers of a caller that is gone: the call that waits is cancelled.
    pub const GONE: &str = "io.caribou/gone";
    /// How the state of a call begins that a server of the legacy era asked something in.
    pub const PARKED: &str = "caribou-parked-";
    /// The least level of log messages that the caller wants of this request: a member of `_meta`.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// What the caller answers to questions of the server: the parameter `inputResponses`.
    pub const INPUT_RESPONSES: &str = "io.caribou/inputResponses";
    /// The state that the server gave with its questions: the parameter `requestState`.
    pub const REQUEST_STATE: &str = "io.caribou/requestState";
}

/// One `tools/call`.
pub struct ToolCall {
    /// The tool's raw name.
    pub name: Arc<str>,
    /// Its arguments as the caller wrote them; absent stays absent.
    pub arguments: Option<Box<RawValue>>,
    /// Members for `_meta` beside those the protocol writes, such as `traceparent`, and what is [`relayed`]. Values are
    /// JSON text.
    pub meta: Vec<(String, Box<RawValue>)>,
    /// Headers of this call alone, laid over those of its session.
    pub headers: Vec<(String, Secret)>,
    /// Where progress goes; a token is sent upstream only when somebody listens.
    pub progress: Option<ProgressSink>,
    /// Set when the caller can follow a task in place of a result (mcp.md §9): in the legacy era it goes as the member
    /// `task` and asks for one, in the modern era the extension is declared and the server decides.
    pub task: Option<Box<RawValue>>,
}

/// Watches resources for changes: a request of this method may be made in sessions of either era (mcp.md §5), with the
/// URIs in `notifications.resourceSubscriptions`. It goes on for as long as it is watched. The session tells its sink
/// [`Progress::Progress`] once it does, whose `notifications.resourceSubscriptions` holds what of it the server grants, and
/// [`Progress::Message`] with the `params` of each
/// `notifications/resources/updated`. In a legacy session a URI that several watch is subscribed to once.
pub const LISTEN: &str = "subscriptions/listen";

/// One request of any method.
pub struct RawRequest {
    /// The method.
    pub method: Cow<'static, str>,
    /// Its parameters: an object.
    pub params: Box<RawValue>,
    /// Headers of this request alone, laid over those of its session.
    pub headers: Vec<(String, Secret)>,
    /// Where progress goes.
    pub progress: Option<ProgressSink>,
}

/// A request of a server that belongs to one of its tasks.
#[derive(Clone, Debug)]
pub struct TaskQuestion {
    /// Names it: unique among all questions of all sessions.
    pub name: String,
    /// What is asked for: `elicitation/create`.
    pub method: String,
    /// Its parameters, byte for byte.
    pub params: Box<RawValue>,
}

/// Receives the progress of one call. Must not block.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// One report of a running call.
#[derive(Clone, Debug)]
pub enum Progress {
    /// `notifications/progress`: its `params` without the token, as the server wrote them.
    Progress(Arc<RawValue>),
    /// `notifications/message`: its `params`.
    Message(Arc<RawValue>),
}

/// All tools of one server.
#[derive(Clone, Debug, Default)]
pub struct ToolListing {
    /// The `Tool` objects in server order, byte for byte.
    pub tools: Vec<Arc<RawValue>>,
    /// What a person should know: a cursor that loops, a tool left out and why.
    pub warnings: Vec<String>,
}
