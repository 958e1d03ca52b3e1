//! POST /api/mcp/tools/call
//!
//! The hot path: the body is parsed once, `arguments` stay the caller's bytes, `result` stays the server's.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use caribou_core::ids::RequestId;
use caribou_core::result::{AgentResult, Artifact, Block};
use caribou_runtime::{CallTool, CalledTool, Caller, SessionSeen, Shape};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::carrier::{self, CallConfig, Context, Metadata};
use crate::body::JsonBody;
use crate::event_stream::{self, EventsWanted};
use crate::identity::Identified;
use crate::openapi::{BodyProblems, CallProblems};
use crate::problem::Problem;
use crate::router::Replica;
use crate::scope::scope;

/// What an answer needs besides the result: names, ids and punctuation. Longer names only cost one more allocation.
const ANSWER_FRAME: usize = 512;

/// One tool call. Unknown members are ignored.
#[derive(Deserialize, ToSchema)]
#[serde(expecting = "an object")]
#[schema(example = json!({
    "name": "memory_search_nodes",
    "arguments": {"query": "reindeer"},
    "user_id": "ann",
    "thread_id": "thread-1",
    "timeout": 30
}))]
pub(crate) struct CallRequest {
    /// The tool's name, as `GET /api/mcp/tools` shows it.
    name: String,
    /// The arguments. They reach the server byte for byte; absent stays absent, `null` stays `null`, and of equal
    /// members all are sent.
    #[serde(default, deserialize_with = "as_written")]
    #[schema(value_type = Option<Object>)]
    arguments: Option<Box<RawValue>>,
    /// For whom; absent or empty: for the caller itself. At most 256 bytes, no control characters.
    #[schema(max_length = 256)]
    user_id: Option<String>,
    /// In which conversation; absent or empty: `default`. A stateful server keeps one state per user and thread.
    #[schema(pattern = "^[A-Za-z0-9_-]{0,64}$")]
    thread_id: Option<String>,
    /// The run of an agent that calls, for interceptors.
    run_id: Option<String>,
    /// The model's id of this call, for interceptors.
    tool_call_id: Option<String>,
    /// `config.context.secrets` holds the secrets of this request by key, strings all: for the headers and interceptors
    /// that ask for them. At most 64 of 16 KiB; never stored, logged or sent on otherwise. No `metadata` in it may hold
    /// `auth_token`.
    #[schema(value_type = Option<Object>, example = json!({"context": {"secrets": {"API_KEY": "..."}}}))]
    config: Option<CallConfig>,
    /// Another place for `secrets`; `config.context` wins.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    context: Context,
    /// What a caller notes of its run. Not used; must hold no `auth_token`, since metadata is kept and shown.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Metadata>,
    /// Whether to call the tool as a background task if it leaves the choice: the answer is then that of a submit. Refused
    /// for a tool that cannot be one. Absent: false.
    #[serde(default)]
    task: bool,
    /// The longest this call may take, in seconds. Bounds of server and replica hold besides.
    #[schema(exclusive_minimum = 0)]
    timeout: Option<f64>,
    /// `agent` adds the member `agent` to the answer; `result` is the same either way. Absent: `raw`.
    format: Option<Format>,
    /// With `format: agent`: whether text in it that imitates the framework's own prompt sections is made harmless.
    /// Absent: true.
    neutralise: Option<bool>,
}

/// What a call is answered with.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// The server's result.
    Raw,
    /// The server's result, and beside it a form for agents.
    Agent,
}

impl CallRequest {
    fn into_call(self, caller: Caller, request_id: RequestId) -> Result<CallTool, Problem> {
        let secrets = carrier::secrets(self.metadata, self.config, self.context)?;
        let scope = scope(&caller, self.user_id.as_deref(), self.thread_id.as_deref())?;
        Ok(CallTool {
            name: self.name,
            arguments: self.arguments,
            meta: Vec::new(),
            caller,
            secrets,
            run_id: self.run_id.map(Into::into),
            tool_call_id: self.tool_call_id.map(Into::into),
            scope,
            task: self.task.into(),
            timeout: self.timeout.map(bound).transpose()?,
            progress: None,
            shape: match self.format {
                None | Some(Format::Raw) => Shape::Raw,
                Some(Format::Agent) => Shape::Agent { neutralise: self.neutralise.unwrap_or(true) },
            },
            request_id,
        })
    }
}

/// Keeps `null` apart from absent, which `Option` alone would not.
fn as_written<'de, D: Deserializer<'de>>(member: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(member).map(Some)
}

fn bound(seconds: f64) -> Result<Duration, Problem> {
    let bound = Duration::try_from_secs_f64(seconds).ok().filter(|bound| !bound.is_zero());
    bound.ok_or_else(|| Problem::invalid("`timeout` must be a number of seconds above zero"))
}

/// The answer of a call that was made. A tool that failed says so in `result.isError`.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "result": {"content": [{"type": "text", "text": "3 nodes"}], "isError": false},
    "session": {
        "server": "memory",
        "epoch": 1,
        "replica": "0198f3c2-6a1b-7c3e-9d2f-5b8e7a1c4d60",
        "restarted": false
    },
    "request_id": "0198f3c2-7b2c-7d4f-8e30-6c9f8b2d5e71"
}))]
pub(crate) struct CallAnswer<'a> {
    /// The server's `CallToolResult`, byte for byte.
    #[schema(value_type = Object)]
    result: &'a RawValue,
    /// The result as an agent reads it; only with `format: agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    agent: Option<AgentForm<'a>>,
    /// The session that answered; null for servers that keep no state between calls.
    #[schema(required = true)]
    session: Option<AnsweringSession<'a>>,
    /// Names this request in logs and traces.
    #[schema(value_type = String)]
    request_id: &'a RequestId,
}

/// A result as an agent reads it.
#[derive(Serialize, ToSchema)]
struct AgentForm<'a> {
    /// Content blocks: `{"type": "text", "text"}`, and `image` or `file` with `base64` or `url`, and `mime_type` where
    /// it is known. A block of another kind is text that holds its JSON. Paths of files that a stdio server made for
    /// this thread are those of the agent's own file tree.
    #[schema(value_type = Vec<Object>)]
    content: &'a [Block],
    /// `{"structured_content"}` when the server answered with some, byte for byte; else null.
    #[schema(value_type = Option<Object>, required = true)]
    artifact: Option<&'a Artifact>,
    /// Whether the tool failed.
    is_error: bool,
    /// What a tool that failed says: its texts, a line each, or its whole content when it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    error: Option<String>,
}

impl<'a> From<&'a AgentResult> for AgentForm<'a> {
    fn from(form: &'a AgentResult) -> Self {
        let AgentResult { content, artifact, is_error } = form;
        Self { content, artifact: artifact.as_ref(), is_error: *is_error, error: form.error() }
    }
}

/// The session that answered a call.
#[derive(Serialize, ToSchema)]
struct AnsweringSession<'a> {
    /// The server it is with.
    server: &'a str,
    /// Which life of this server's session for this thread, counted from 1.
    epoch: u64,
    /// The replica that holds it.
    replica: &'a str,
    /// Whether this is the first answer of this thread from a new session that took an earlier one's place: what the
    /// server knew of the thread is lost.
    restarted: bool,
}

impl<'a> CallAnswer<'a> {
    pub(crate) fn new(called: &'a CalledTool, request_id: &'a RequestId) -> Self {
        Self {
            result: &called.result,
            agent: called.agent.as_ref().map(AgentForm::from),
            session: called.session.as_ref().map(AnsweringSession::from),
            request_id,
        }
    }
}

impl<'a> From<&'a SessionSeen> for AnsweringSession<'a> {
    fn from(session: &'a SessionSeen) -> Self {
        Self {
            server: session.server.as_str(),
            epoch: session.epoch.0,
            replica: session.replica.as_str(),
            restarted: session.restarted,
        }
    }
}

impl IntoResponse for CallAnswer<'_> {
    /// Writes the body in one piece: results can be megabytes, and each growth of a buffer would copy them again.
    fn into_response(self) -> Response {
        let mut body = Vec::with_capacity(self.result.get().len() + ANSWER_FRAME);
        match serde_json::to_writer(&mut body, &self) {
            Ok(()) => ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response(),
            Err(_) => Problem::bug().into_response(),
        }
    }
}

/// Calls one tool.
///
/// With `Accept: text/event-stream` the answer is a stream: events `progress` and `message` with what the server
/// reports, then one `result` or `error` with the body that would have been answered otherwise. A caller that goes
/// away cancels its call.
#[utoipa::path(
    post,
    path = "/api/mcp/tools/call",
    tag = "tools",
    request_body = CallRequest,
    responses(
        (status = 200, description = "The call was made", content(
            (CallAnswer<'static> = "application/json"),
            (String = "text/event-stream", example = "event: progress\ndata: {\"progress\":1,\"total\":2}\n\nevent: result\ndata: {\"result\":{\"content\":[]},\"session\":null,\"request_id\":\"0198f3c2-7b2c-7d4f-8e30-6c9f8b2d5e71\"}\n\n"),
        )),
        BodyProblems,
        CallProblems,
    ),
)]
pub(crate) async fn call_tool(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    Extension(id): Extension<RequestId>,
    EventsWanted(streamed): EventsWanted,
    JsonBody(request): JsonBody<CallRequest>,
) -> Result<Response, Problem> {
    let call = request.into_call(caller, id.clone())?;
    if streamed {
        return Ok(event_stream::respond(replica, call));
    }
    let called = replica.runtime.call_tool(call).await?;
    Ok(CallAnswer::new(&called, &id).into_response())
}
