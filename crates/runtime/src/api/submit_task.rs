//! Submit a durable task: what a call of a submitting tool does (contract 6.4, 6.11).
//!
//! The caller hears `{task_id, task_name, status, message}` as a `CallToolResult`, with the local name; the remote's own
//! never leaves us. A task of the protocol itself, asked for or made by the server of a plain call, is told alike, under the
//! raw name of its tool (mcp.md §9). Nothing is submitted to a server whose stored configuration is another one than the one that its
//! tasks would be followed by, until the next start (contract 6.12).

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds::TASKS_PER_USER;
use caribou_core::config::endpoint_fingerprint;
use caribou_core::failure::{Class, Code};
use caribou_core::ids::Scope;
use caribou_core::task::limits::COMPENSATION;
use caribou_core::task::native::{self, NoWay, TASKS_EXTENSION, Way};
use caribou_core::task::submission::Submitted;
use caribou_core::task::{Status, TaskId};
use caribou_ports::store::{Noted, TaskClaim, TaskIntent};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::call_tool::{CallTool, CalledTool, MadeTask};
use crate::Runtime;
use crate::call::{Answered, Bound, Prepared};
use crate::catalog::{Makes, Target};
use crate::error::{UpstreamError, VerbError};
use crate::session::Handle;
use crate::shape::Shaping;
use crate::tasks::{Made, Outcome, Submission, Submitting, TaskRoad, random, submit_key};

/// What a call has to do with tasks.
pub(super) enum AsTask<'t> {
    /// Nothing.
    No,
    /// Its server may answer it by one.
    Perhaps(&'t Makes),
    /// It submits one.
    Submitted(&'t Makes),
}

impl Runtime {
    /// What this call of `target` has to do with tasks.
    ///
    /// # Errors
    /// `invalid`: it asks for a task of a tool that makes none. `unavailable`: it takes a task, and nobody follows any.
    pub(super) fn as_task<'t>(&self, target: &'t Target, call: &CallTool) -> Result<AsTask<'t>, VerbError> {
        let makes = target.makes.as_ref();
        // The submitting tool of a toolset tells by itself what it lacks (contract 6.11).
        if let Some(makes) = makes.filter(|makes| !makes.is_native()) {
            return Ok(AsTask::Submitted(makes));
        }
        let driven = |makes: &Makes| self.tasks.as_ref().is_some_and(|road| road.drivers.get(makes.driver).is_some());
        let is_followed = makes.is_some_and(driven);
        let way = native::way(makes.map(|makes| makes.offer), call.task, is_followed);
        let way = way.map_err(|no_way| refused(no_way, &call.name))?;
        Ok(match (way, makes) {
            (Way::Task, Some(makes)) => AsTask::Submitted(makes),
            (Way::CallOrTask, Some(makes)) => AsTask::Perhaps(makes),
            _ => AsTask::No,
        })
    }

    /// Sees to the task that a server made of a call, if its answer tells of one. `None` = it is an ordinary result.
    ///
    /// # Errors
    /// The server made a task that cannot be followed, or that cannot be stored and is cancelled.
    pub(crate) async fn keep_made(
        &self,
        target: &Target,
        makes: &Makes,
        call: &CallTool,
        (result, answered_by): (&RawValue, Arc<Handle>),
    ) -> Result<Option<Answered>, VerbError> {
        let Some(road) = &self.tasks else { return Ok(None) };
        let Some(driver) = road.drivers.get(makes.driver) else { return Ok(None) };
        let remote = match driver.created(result) {
            Ok(None) => return Ok(None),
            Ok(Some(remote)) => remote,
            Err(misread) => {
                let server = target.binding.server.shown_name();
                let detail = format!("server `{server}` made a task of the call that cannot be followed: {misread}");
                return Err(VerbError::new(Code::UpstreamError, detail));
            }
        };
        let intent = self.intent_of(road, target, makes, call)?;
        let task = intent.task;
        let upstream = road.answered_upstream(task, &call.scope, &target.binding, answered_by);
        let made = Made { road: road.clone(), driver: driver.clone(), intent, remote, upstream };
        match made.begin().await.map_err(|_| VerbError::fault())?? {
            Outcome::Task(status) => Ok(Some(told(call, task, makes, status))),
            Outcome::Answered(_) => Ok(None),
        }
    }

    /// Submits the task that `target` makes.
    pub(super) async fn submit_task(
        &self,
        target: &Target,
        makes: &Makes,
        call: &mut CallTool,
        prepared: Prepared,
        bound: Bound,
    ) -> Result<Answered, VerbError> {
        let road = self.tasks.as_ref().ok_or_else(not_initialized)?;
        let server = &target.binding.server;
        self.demand_unchanged(&server.name)?;
        let driver = road.drivers.get(makes.driver).ok_or_else(|| {
            VerbError::new(Code::NotFound, format!("no task driver `{}` is part of this program", makes.driver))
        })?;
        let intent = self.intent_of(road, target, makes, call)?;
        let arguments = prepared.arguments(call).map(RawValue::to_owned);
        let claim = match note(road, &intent).await? {
            Noticed::Begun(claim) => claim,
            Noticed::Before(task, status) => return Ok(told(call, task, makes, status)),
        };
        let Prepared { headers, meta, passage, .. } = prepared;
        let submitting = Submitting { headers, meta, passage, progress: call.progress.clone() };
        let upstream = road.submit_upstream(intent.task, &call.scope, &target.binding, submitting);
        let (task, deadline) = (intent.task, bound.deadline);
        let span = tracing::info_span!("submit_task", %task, server = %server.name, task_name = %makes.task_name);
        let submission =
            Submission { road: road.clone(), driver: driver.clone(), intent, claim, upstream, arguments, deadline };
        let outcome = span.in_scope(|| submission.begin()).await;
        match outcome.map_err(|_| VerbError::fault())?? {
            Outcome::Task(status) => Ok(told(call, task, makes, status)),
            Outcome::Answered(result) => Ok(crate::call::answered(call, result)),
        }
    }

    fn intent_of(
        &self,
        road: &TaskRoad,
        target: &Target,
        makes: &Makes,
        call: &CallTool,
    ) -> Result<TaskIntent, VerbError> {
        Ok(TaskIntent {
            run_id: call.run_id.as_deref().map(str::to_owned),
            tool_call_id: call.tool_call_id.as_deref().map(str::to_owned),
            ..self.intent(road, target, makes, &call.scope)?
        })
    }

    /// That `target` is about to make a task for `scope`.
    pub(super) fn intent(
        &self,
        road: &TaskRoad,
        target: &Target,
        makes: &Makes,
        scope: &Scope,
    ) -> Result<TaskIntent, VerbError> {
        let server = &target.binding.server;
        let most = server.tool_call_timeout.unwrap_or(Duration::MAX).min(road.limits.call_timeout());
        Ok(TaskIntent {
            task: TaskId(random()?),
            submit_key: submit_key()?,
            scope: scope.clone(),
            server: server.name.clone(),
            driver: makes.driver.to_owned(),
            task_name: makes.task_name.to_string(),
            snapshot: if makes.is_native() { endpoint_fingerprint(server) } else { road.fingerprint(server) },
            is_pinned: makes.is_pinned,
            run_id: None,
            tool_call_id: None,
            owner: self.boot.clone(),
            // The remote's answer, and twice what storing it may take.
            lease: most.saturating_add(COMPENSATION * 3),
            at_most: TASKS_PER_USER,
        })
    }

    /// Refuses new tasks of a server that is another one in the stored configuration (contract 6.12).
    fn demand_unchanged(&self, server: &caribou_core::ids::ServerName) -> Result<(), VerbError> {
        let pending = self.configuration.as_ref().map(|desk| desk.pending.get()).unwrap_or_default();
        if !pending.contains(server) {
            return Ok(());
        }
        let names: Vec<&str> = pending.iter().map(|name| name.as_str()).collect();
        let detail = format!("MCP task configuration changed after startup ({}); restart Caribou", names.join(", "));
        Err(VerbError::new(Code::ConfigChanged, detail))
    }
}

/// What became of an intent.
enum Noticed {
    Begun(TaskClaim),
    Before(TaskId, Status),
}

/// Stores the intent. Nothing is asked of the server before (invariant T1).
async fn note(road: &TaskRoad, intent: &TaskIntent) -> Result<Noticed, VerbError> {
    match road.store.note_intent(intent.clone()).await {
        Ok(Noted::Intended(claim)) => Ok(Noticed::Begun(claim)),
        Ok(Noted::Existing { task, status }) => Ok(Noticed::Before(task, status)),
        Ok(Noted::Full) => {
            let detail = format!("this user has {TASKS_PER_USER} unfinished background tasks, as many as it may have");
            Err(VerbError { retry_after: Some(Duration::from_secs(60)), ..VerbError::new(Code::Busy, detail) })
        }
        Err(error) => {
            // Whatever was stored, the server was not asked.
            let code = if error.class() == Class::Conflict { Code::Conflict } else { Code::Unavailable };
            Err(VerbError::new(code, format!("the task was not submitted, because it cannot be stored: {error}")))
        }
    }
}

/// What the caller hears of its task.
fn told(call: &CallTool, task: TaskId, makes: &Makes, status: Status) -> Answered {
    let result = says(serde_json::to_value(Submitted::of(task, &makes.task_name, status)));
    let task = Some(MadeTask { task, is_native: makes.is_native() });
    (CalledTool { result, agent: None, session: None, task }, Shaping::of_ready(call.shape))
}

/// Why a call is not made. Whoever can take no task reads the error that the protocol has for it (mcp.md §9.2, undeclared
/// client).
fn refused(no_way: NoWay, tool: &str) -> VerbError {
    let refused = VerbError::new(no_way.code(), format!("tool `{tool}` {no_way}"));
    if no_way != NoWay::NotTaken {
        return refused;
    }
    let needed = json!({ "requiredCapabilities": { "extensions": { TASKS_EXTENSION: {} } } });
    let data = serde_json::value::to_raw_value(&needed).ok().map(Arc::from);
    let upstream = UpstreamError { code: CAPABILITY_MISSING, message: refused.detail.clone(), data };
    VerbError { upstream: Some(upstream), ..refused }
}

/// The protocol's code for a capability that a client does not declare (mcp.md §11).
const CAPABILITY_MISSING: i64 = -32_021;

/// A `CallToolResult` of ours that says this, as text and as data. What is ours always becomes JSON.
pub(super) fn says(what: serde_json::Result<Value>) -> Box<RawValue> {
    let what = what.unwrap_or(Value::Null);
    let result = json!({ "content": [{ "type": "text", "text": what.to_string() }], "structuredContent": what });
    serde_json::value::to_raw_value(&result).unwrap_or_default()
}

/// A submitting tool without anybody who follows tasks (contract 6.11).
fn not_initialized() -> VerbError {
    let detail = "the MCP task runtime is not initialized: set mcp_tasks.enabled=true and a SQL database \
                  (database.backend: sqlite or postgres), then restart";
    VerbError::new(Code::Unavailable, detail)
}
