//! Call one tool.
//!
//! The way of a call: what the caller may → catalogue (where does the name lead) → `call/prepare` (what goes with it) →
//! router (a session of the scope, opened if there is none) → the session itself. No message passes through an actor
//! while the session is live.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::failure::Code;
use caribou_core::ids::{BootId, Epoch, RequestId, Scope, ServerName};
use caribou_core::result::AgentResult;
use caribou_core::task::TaskId;
use caribou_core::task::native::Wish;
use caribou_ports::mcp::ProgressSink;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use super::submit_task::AsTask;
use crate::Runtime;
use crate::audit::{Entry, Recording};
use crate::call::{Answered, Bound, Way, answered, kept_back, prepare};
use crate::caller::{Caller, RequestSecrets};
use crate::catalog::Target;
use crate::error::VerbError;
use crate::shape::Shape;

/// One call as a caller asks for it.
pub struct CallTool {
    /// The visible name.
    pub name: String,
    /// The arguments, passed on as they are; absent stays absent.
    pub arguments: Option<Box<RawValue>>,
    /// Members for the `_meta` that the server sees, and what of the caller's is relayed to it
    /// (`caribou_ports::mcp::relayed`).
    pub meta: Vec<(String, Box<RawValue>)>,
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
    /// What the caller says of tasks: whether it asks for one, takes one, or can take none.
    pub task: Wish,
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
    /// The task that the call made, which `result` names then; `None` = `result` is that of the call.
    pub task: Option<MadeTask>,
}

/// A task that a call made. It is on record (invariant T1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeTask {
    /// Its local name.
    pub task: TaskId,
    /// Whether it is one of the protocol itself; else the submitting tool of a toolset made it.
    pub is_native: bool,
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
        self.call_recorded(call, false).await
    }

    /// The same for a caller that is shown the schemas of all tools of a server: none of them is to be fetched first,
    /// and where only one server is shown there is no `tool_search` to fetch one with.
    ///
    /// # Errors
    /// As [`Runtime::call_tool`].
    pub async fn call_shown_tool(&self, call: CallTool) -> Result<CalledTool, VerbError> {
        self.call_recorded(call, true).await
    }

    async fn call_recorded(&self, call: CallTool, is_shown: bool) -> Result<CalledTool, VerbError> {
        let entry = Entry::new("call_tool", &call.caller).named(&call.request_id).within(&call.scope);
        let mut row = self.audit.begin(entry.of_tool(&call.name))?;
        if let Some(target) = self.catalog.snapshot().target(&call.name) {
            row.about(&target.binding.server.name);
        }
        let called = self.call_on_record(call, is_shown, &mut row).await;
        row.end(&called);
        called
    }

    async fn call_on_record(
        &self,
        mut call: CallTool,
        is_shown: bool,
        row: &mut Recording,
    ) -> Result<CalledTool, VerbError> {
        self.options.guardrails.judge(&call.name).map_err(|reason| kept_back(&call, reason))?;
        call.caller.principal.uses(&call.name)?;
        call.secrets.check()?;
        let Ok(_slot) = self.calls.try_acquire() else {
            return Err(VerbError {
                retry_after: Some(Duration::from_secs(1)),
                ..VerbError::new(Code::Busy, "this replica has as many calls in flight as it may; try again")
            });
        };
        if let Some(tool) = self.agent_tool(&call.name) {
            return self.call_agent_tool(tool, &call).await;
        }
        let bound = Bound::of(call.timeout.unwrap_or(self.options.call_max).min(self.options.call_max));
        let found = async {
            let found = self.find_tool(&call.name, &call.scope.user).await?;
            let target = &found.target;
            call.caller.principal.holds(target.binding.server.scopes_of(&target.raw_name))?;
            if !is_shown {
                self.demand_fetched(&call.name, &call.scope).await?;
            }
            Ok::<_, VerbError>(found)
        };
        // Held to the end of the call.
        let found = match timeout_at(bound.deadline, found).await {
            Ok(found) => found?,
            Err(_) => return Err(bound.not_called(&call.name, "its server is still being discovered")),
        };
        let target = &found.target;
        row.about(&target.binding.server.name);
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
        let called = self.call_found(target, &mut call, bound).instrument(span.clone()).await;
        let outcome = called.as_ref().map_or_else(|error| error.code.as_str(), |_| "ok");
        span.record("outcome", outcome);
        self.metrics.called(&target.labels, outcome, began.elapsed());
        let (mut called, shaping) = called?;
        if let Some(shaping) = shaping {
            called.agent = Some(shaping.finish(&called.result).await);
        }
        Ok(called)
    }

    /// Prepares the call and sends it, unless an interceptor answers in its server's place.
    async fn call_found(&self, target: &Target, call: &mut CallTool, bound: Bound) -> Result<Answered, VerbError> {
        let as_task = self.as_task(target, call)?;
        match timeout_at(bound.deadline, prepare(target, call)).await {
            Ok(Ok(Way::On(prepared))) => match as_task {
                AsTask::Submitted(makes) => self.submit_task(target, makes, call, *prepared, bound).await,
                AsTask::Perhaps(makes) => self.call_target(target, call, *prepared, bound, Some(makes)).await,
                AsTask::No => self.call_target(target, call, *prepared, bound, None).await,
            },
            Ok(Ok(Way::Answered(result))) => Ok(answered(call, result)),
            Ok(Err(refused)) => Err(refused),
            Err(_) => Err(bound.not_called(&call.name, "an interceptor has not answered yet")),
        }
    }
}
