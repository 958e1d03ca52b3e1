//! Sends a prepared call in a session of its user, thread and credentials, and brings the answer back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use caribou_core::era::Era;
use caribou_core::session::call_limits;
use caribou_ports::mcp::{CallError, ToolCall};
use serde_json::value::RawValue;

use super::Prepared;
use super::bounds::{Bound, Silence, heard, timed_out, too_silent};
use super::failure::call_failed;
use crate::Runtime;
use crate::api::call_tool::{CallTool, CalledTool, SessionSeen};
use crate::catalog::{Makes, Target};
use crate::error::VerbError;
use crate::session::{Admitted, Handle};
use crate::shape::Shaping;

/// What came back, and what is left to do about its form.
pub(crate) type Answered = (CalledTool, Option<Shaping>);

/// How often a call is sent whose session moves from replica to replica under it: each time it surely did not reach its
/// server.
pub(crate) const MOVES: u32 = 16;

/// The pause after the first such move; each further one is longer by as much.
pub(crate) const MOVE_PAUSE: Duration = Duration::from_millis(20);

/// One attempt that failed.
struct Failed {
    error: VerbError,
    /// Whether the call surely never reached its server, and by whose session.
    not_sent: Option<Lost>,
}

/// Whose session a call was not sent in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// This replica's: it was lost between two calls.
    Here,
    /// Another replica's, which does not hold it any more.
    There,
}

impl From<VerbError> for Failed {
    fn from(error: VerbError) -> Self {
        Self { error, not_sent: None }
    }
}

/// What an interceptor answered in the server's place.
pub(crate) fn answered(call: &CallTool, result: Box<RawValue>) -> Answered {
    (CalledTool { result, agent: None, session: None, task: None }, Shaping::of_ready(call.shape))
}

impl Runtime {
    /// Sends the call, shows the result to its interceptors, and answers with what they made of it. `perhaps` = the server
    /// is told that it may answer by a task, and what tells of one is none of the results that interceptors know.
    pub(crate) async fn call_target(
        &self,
        target: &Target,
        call: &CallTool,
        prepared: Prepared,
        bound: Bound,
        perhaps: Option<&Makes>,
    ) -> Result<Answered, VerbError> {
        let server = &target.binding.server;
        let reached = AtomicBool::new(false);
        let attempt = async {
            let (mut is_first, mut moves) = (true, 0);
            loop {
                match self.attempt(target, call, &prepared, (&reached, perhaps.is_some())).await {
                    Err(Failed { not_sent: Some(Lost::Here), .. }) if is_first => is_first = false,
                    Err(Failed { not_sent: Some(Lost::There), .. }) if moves < MOVES => {
                        moves += 1;
                        tokio::time::sleep(MOVE_PAUSE * moves).await;
                    }
                    done => break done,
                }
            }
        };
        let ((mut called, shaping), answered_by) = match tokio::time::timeout_at(bound.deadline, attempt).await {
            Ok(done) => done.map_err(|failed| failed.error)?,
            Err(_) if !reached.load(Ordering::Relaxed) => {
                let why = format!("server `{}` is still being opened", server.shown_name());
                return Err(bound.not_called(&call.name, &why));
            }
            Err(_) => return Err(bound.passed(server, &target.raw_name)),
        };
        if let Some(makes) = perhaps
            // Boxed: most calls never come here, and each would carry it along.
            && let Some(task) = Box::pin(self.keep_made(target, makes, call, (&called.result, answered_by))).await?
        {
            return Ok(task);
        }
        if let Some(passage) = prepared.passage {
            let shown = tokio::time::timeout_at(bound.deadline, passage.after(called.result)).await;
            called.result = shown.unwrap_or_else(|_| Err(bound.not_shown(&call.name)))?;
        }
        Ok((called, shaping))
    }

    /// `reached` is set once the call may have reached the server. `declares` = the server may answer by a task. Answers
    /// also with the session that answered.
    async fn attempt(
        &self,
        target: &Target,
        call: &CallTool,
        prepared: &Prepared,
        (reached, declares): (&AtomicBool, bool),
    ) -> Result<(Answered, Arc<Handle>), Failed> {
        let server = &target.binding.server;
        let admitted = self.router.admit(&target.binding, &call.scope, &prepared.headers).await?;
        reached.store(true, Ordering::Relaxed);
        let facts = admitted.session.facts();
        tracing::Span::current().record("era", tracing::field::display(facts.era));
        let shaping = Shaping::begin(call.shape, self.folders.as_ref(), server, &call.scope).await;
        let limits = call_limits(server, call.timeout, self.options.http_call_timeout, self.options.call_max);
        let silence = limits.idle.map(Silence::new);
        let upstream = ToolCall {
            name: target.raw_name.clone(),
            arguments: prepared.arguments(call).map(RawValue::to_owned),
            meta: call.meta.iter().chain(&prepared.meta).cloned().collect(),
            headers: prepared.call_headers(server),
            progress: heard(call.progress.clone(), silence.as_ref()),
            // Nothing is asked for of a server that turned out to be of the other era.
            task: (declares && facts.era == Era::Modern).then(Box::<RawValue>::default),
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
            Ok(result) => {
                let called = CalledTool { result, agent: None, session: self.seen(&admitted).await, task: None };
                Ok(((called, shaping), admitted.handle.clone()))
            }
            Err(error) => {
                let not_sent = matches!(error, CallError::Disconnected { sent: false, .. });
                let lost = if admitted.handle.home.is_there() { Lost::There } else { Lost::Here };
                let error = call_failed(server, &target.raw_name, error, prepared.headers.values());
                Err(Failed { error, not_sent: not_sent.then_some(lost) })
            }
        }
    }

    async fn seen(&self, admitted: &Admitted) -> Option<SessionSeen> {
        if !admitted.session.facts().stateful {
            return None;
        }
        let handle = &admitted.handle;
        let epoch = handle.epoch();
        let restarted = handle.first_answer() && self.router.served(&handle.key, epoch).await;
        let replica = handle.owner(&self.boot).clone();
        Some(SessionSeen { server: handle.key.server.clone(), epoch, replica, restarted })
    }
}
