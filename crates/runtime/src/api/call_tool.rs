//! Call one tool.
//!
//! The way of a call: catalogue (where does the name lead) → router (a session of the scope, opened if there is none)
//! → the session itself. No message passes through an actor while the session is live.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use caribou_core::config::ServerConfig;
use caribou_core::failure::Code;
use caribou_core::guardrails;
use caribou_core::ids::{BootId, Epoch, RequestId, Scope, ServerName};
use caribou_core::result::AgentResult;
use caribou_core::session::call_limits;
use caribou_ports::mcp::{CallError, ProgressSink, ToolCall};
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::Instrument;

use crate::Runtime;
use crate::caller::{Caller, RequestSecrets};
use crate::catalog::Target;
use crate::error::{UpstreamError, VerbError};
use crate::session::Admitted;
use crate::shape::{Shape, Shaping};

/// One call as a caller asks for it.
pub struct CallTool {
    /// The visible name.
    pub name: String,
    /// The arguments, passed on as they are; absent stays absent.
    pub arguments: Option<Box<RawValue>>,
    /// Who calls.
    pub caller: Caller,
    /// For whom, in which thread. Whether the caller may act for that user was judged when the scope was made.
    pub scope: Scope,
    /// Secrets of this request, by key: for headers and interceptors that ask for them, never stored, never sent on.
    pub secrets: RequestSecrets,
    /// The run of an agent that calls.
    pub run_id: Option<Arc<str>>,
    /// The model's id of this call.
    pub tool_call_id: Option<Arc<str>>,
    /// The caller's own bound; the server's and the replica's bounds hold besides.
    pub timeout: Option<Duration>,
    /// Where progress goes.
    pub progress: Option<ProgressSink>,
    /// What is wanted beside the raw result.
    pub shape: Shape,
    /// Names this request in logs and spans.
    pub request_id: RequestId,
}

/// What came back.
pub struct CalledTool {
    /// The server's `CallToolResult`, byte for byte.
    pub result: Box<RawValue>,
    /// The same for an agent, if it was asked for.
    pub agent: Option<AgentResult>,
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

impl Runtime {
    /// Calls one tool in the session of the call's scope, opened if there is none.
    ///
    /// Dropping the future cancels the call upstream. A call that may have reached its server is never repeated
    /// (invariant S2); one that surely did not is sent once more when its session was lost under it.
    ///
    /// # Errors
    /// See [`VerbError::code`]; a tool that failed (`isError`) is a result, not an error.
    pub async fn call_tool(&self, call: CallTool) -> Result<CalledTool, VerbError> {
        self.options.guardrails.judge(&call.name).map_err(|reason| kept_back(&call, reason))?;
        let Ok(_slot) = self.calls.try_acquire() else {
            return Err(VerbError {
                retry_after: Some(Duration::from_secs(1)),
                ..VerbError::new(Code::Busy, "this replica has as many calls in flight as it may; try again")
            });
        };
        let whole = call.timeout.unwrap_or(self.options.call_max).min(self.options.call_max);
        let deadline = Instant::now() + whole;
        let found = async {
            let target = self.catalog.find(&call.name).await?;
            self.demand_fetched(&call.name, &call.scope).await.map(|()| target)
        };
        let target = match tokio::time::timeout_at(deadline, found).await {
            Ok(found) => found?,
            Err(_) => return Err(not_called(&call.name, "its server is still being discovered", whole)),
        };
        let span = tracing::info_span!(
            "call_tool",
            server = %target.binding.server.name,
            tool = %target.raw_name,
            session = %call.scope,
            request_id = %call.request_id,
            era = tracing::field::Empty,
            outcome = tracing::field::Empty,
        );
        let began = Instant::now();
        let called = self.call_target(&target, call, deadline, whole).instrument(span.clone()).await;
        let outcome = called.as_ref().map_or_else(|error| error.code.as_str(), |_| "ok");
        span.record("outcome", outcome);
        self.metrics.called(&target.labels, outcome, began.elapsed());
        let (mut called, shaping) = called?;
        if let Some(shaping) = shaping {
            called.agent = Some(shaping.finish(&called.result).await);
        }
        Ok(called)
    }

    async fn call_target(
        &self,
        target: &Target,
        call: CallTool,
        deadline: Instant,
        whole: Duration,
    ) -> Result<Answered, VerbError> {
        let server = &target.binding.server;
        let reached = AtomicBool::new(false);
        let attempt = async {
            match self.attempt(target, &call, &reached).await {
                // It surely never left: the session was lost between two calls.
                Err(Failed { not_sent: true, .. }) => self.attempt(target, &call, &reached).await,
                done => done,
            }
        };
        match tokio::time::timeout_at(deadline, attempt).await {
            Ok(done) => done.map_err(|failed| failed.error),
            Err(_) if !reached.load(Ordering::Relaxed) => {
                Err(not_called(&call.name, &format!("server `{}` is still being opened", server.name), whole))
            }
            Err(_) => Err(timed_out(server, &target.raw_name, "the bound of the call", whole)),
        }
    }

    /// `reached` is set once the call may have reached the server.
    async fn attempt(&self, target: &Target, call: &CallTool, reached: &AtomicBool) -> Result<Answered, Failed> {
        let server = &target.binding.server;
        let admitted = self.router.admit(&target.binding, &call.scope).await?;
        reached.store(true, Ordering::Relaxed);
        let facts = admitted.session.facts();
        tracing::Span::current().record("era", tracing::field::display(facts.era));
        let shaping = Shaping::begin(call.shape, self.folders.as_ref(), server, &call.scope).await;
        let limits = call_limits(server, call.timeout, self.options.http_call_timeout, self.options.call_max);
        let silence = limits.idle.map(Silence::new);
        let upstream = ToolCall {
            name: target.raw_name.clone(),
            arguments: call.arguments.clone(),
            meta: Vec::new(),
            headers: Vec::new(),
            progress: heard(call.progress.clone(), silence.as_ref()),
        };
        let answer = admitted.session.call_tool(upstream);
        let result = tokio::select! {
            answer = answer => answer,
            () = tokio::time::sleep(limits.total) => {
                return Err(timed_out(server, &target.raw_name, "its bound", limits.total).into());
            }
            longest = too_silent(silence.as_ref()) => {
                return Err(timed_out(server, &target.raw_name, "tool_call_idle_timeout: no progress", longest).into());
            }
        };
        admitted.handle.asked(&result);
        match result {
            Ok(result) => Ok((CalledTool { result, agent: None, session: self.seen(&admitted) }, shaping)),
            Err(error) => {
                let not_sent = matches!(error, CallError::Disconnected { sent: false, .. });
                Err(Failed { error: call_failed(server, &target.raw_name, error), not_sent })
            }
        }
    }

    fn seen(&self, admitted: &Admitted) -> Option<SessionSeen> {
        admitted.session.facts().stateful.then(|| {
            let handle = &admitted.handle;
            let epoch = handle.epoch();
            let restarted = handle.first_answer() && self.router.served(&handle.key, epoch);
            SessionSeen { server: handle.key.server.clone(), epoch, replica: self.boot.clone(), restarted }
        })
    }
}

/// What came back, and what is left to do about its form.
type Answered = (CalledTool, Option<Shaping>);

/// One attempt that failed, and whether the call surely never left this process.
struct Failed {
    error: VerbError,
    not_sent: bool,
}

impl From<VerbError> for Failed {
    fn from(error: VerbError) -> Self {
        Self { error, not_sent: false }
    }
}

/// The refusal of a call that guardrails do not let through.
fn kept_back(call: &CallTool, reason: guardrails::Reason) -> VerbError {
    tracing::info!(tool = call.name, session = %call.scope, request_id = %call.request_id, "denied: {reason}");
    VerbError::new(Code::Denied, format!("tool `{}` may not be called: {reason}", call.name))
}

fn call_failed(server: &ServerConfig, tool: &str, error: CallError) -> VerbError {
    let detail = format!("tool `{tool}` of server `{}`: {error}", server.name);
    let upstream = match &error {
        CallError::Rpc { code, message, data } => {
            Some(UpstreamError { code: *code, message: message.clone(), data: data.clone() })
        }
        _ => None,
    };
    VerbError { upstream, ..VerbError::new(error.code(), detail) }
}

/// The bound passed before anything was sent.
fn not_called(tool: &str, why: &str, bound: Duration) -> VerbError {
    let bound = bound.as_secs_f64();
    VerbError::new(
        Code::Timeout,
        format!("tool `{tool}` was not called within {bound} s (the bound of the call): {why}"),
    )
}

fn timed_out(server: &ServerConfig, tool: &str, which: &str, bound: Duration) -> VerbError {
    VerbError::new(
        Code::Timeout,
        format!(
            "tool `{tool}` of server `{}` did not answer within {} s ({which}); it was told to cancel, but it may \
             have had effects",
            server.name,
            bound.as_secs_f64()
        ),
    )
}

/// The longest silence of a call, renewed by each progress report.
struct Silence {
    longest: Duration,
    heard: Arc<Notify>,
}

impl Silence {
    fn new(longest: Duration) -> Self {
        Self { longest, heard: Arc::new(Notify::new()) }
    }
}

/// Where progress goes: to the caller, if one listens, and to the silence, if one is bounded.
fn heard(caller: Option<ProgressSink>, silence: Option<&Silence>) -> Option<ProgressSink> {
    let Some(silence) = silence else { return caller };
    let heard = silence.heard.clone();
    Some(Arc::new(move |progress| {
        heard.notify_one();
        if let Some(caller) = &caller {
            caller(progress);
        }
    }))
}

/// Resolves with the bound when nothing was heard for that long; never without a bound.
async fn too_silent(silence: Option<&Silence>) -> Duration {
    let Some(silence) = silence else { return std::future::pending().await };
    while tokio::time::timeout(silence.longest, silence.heard.notified()).await.is_ok() {}
    silence.longest
}
