//! The tools of our own by which an agent looks after its background tasks (contract 2.4, 6.10).
//!
//! They stand beside the tools of servers in every list while tasks are followed here and something listed makes some,
//! are never deferred, and are called like any other tool: by the same permissions and guardrails, on record, within the
//! user and thread of the call. A tool of a server that has one of their names is hidden by it, so that no server can
//! pose as us.

use std::sync::Arc;

use caribou_core::failure::Code;
use caribou_core::ids::ServerName;
use caribou_core::instant::rfc3339_micros;
use caribou_core::task::agent_tools::{
    AgentTool, CancelTask, Cancelled, LISTED_TASKS, ListTasks, ShownTask, TaskList, harmless,
};
use caribou_core::task::cancel::choose;
use caribou_core::task::native::{Support, Wish};
use caribou_core::task::{TaskId, TaskLimits};
use caribou_ports::store::{StoredTask, TaskFilter};
use serde_json::value::RawValue;

use super::call_tool::{CallTool, CalledTool};
use super::list_tools::{ListedTool, ListedTools};
use super::read_tasks::unread;
use super::submit_task::says;
use crate::Runtime;
use crate::caller::Caller;
use crate::catalog::Snapshot;
use crate::error::VerbError;
use crate::shape::Shaping;

/// What stands for the server of a tool of our own.
const OURS: &str = "caribou";

impl Runtime {
    /// The tool of our own of this visible name, while there are tasks here.
    pub(super) fn agent_tool(&self, name: &str) -> Option<AgentTool> {
        AgentTool::named(name).filter(|_| self.tasks.is_some())
    }

    /// Adds the tools of our own that the caller may use behind the tools of `snapshot`, if some of those make tasks.
    pub(super) fn add_agent_tools(&self, caller: &Caller, snapshot: &Snapshot, listed: &mut ListedTools) {
        if self.tasks.is_none() {
            return;
        }
        listed.tools.retain(|tool| AgentTool::named(&tool.name).is_none());
        if !snapshot.makes_tasks() {
            return;
        }
        for tool in AgentTool::ALL.into_iter().filter(|tool| caller.may_use(tool.name())) {
            if self.options.guardrails.judge(tool.name()).is_err() {
                listed.denied.push(tool.name().into());
            } else {
                listed.tools.extend(shown(tool));
            }
        }
    }

    /// Calls one of them.
    pub(super) async fn call_agent_tool(&self, tool: AgentTool, call: &CallTool) -> Result<CalledTool, VerbError> {
        if call.task == Wish::Asked {
            let detail = format!("tool `{}` answers at once and cannot be called as a task", tool.name());
            return Err(VerbError::new(Code::Invalid, detail));
        }
        let result = match tool {
            AgentTool::ListTasks => says(serde_json::to_value(self.list_background(call).await?)),
            AgentTool::CancelTask => says(serde_json::to_value(self.cancel_background(call).await?)),
        };
        let agent = match Shaping::of_ready(call.shape) {
            Some(shaping) => Some(shaping.finish(&result).await),
            None => None,
        };
        Ok(CalledTool { result, agent, session: None, task: None })
    }

    async fn list_background(&self, call: &CallTool) -> Result<TaskList, VerbError> {
        let wanted = ListTasks::read(call.arguments.as_deref()).map_err(invalid)?;
        let tasks = self.background_tasks(call, wanted.active_only.then_some(true), LISTED_TASKS).await?;
        let limits = self.task_limits();
        Ok(TaskList { tasks: tasks.iter().map(|task| as_shown(task, limits)).collect() })
    }

    async fn cancel_background(&self, call: &CallTool) -> Result<Cancelled, VerbError> {
        let wanted = CancelTask::read(call.arguments.as_deref()).map_err(invalid)?;
        let named = wanted.task.as_deref().map(str::trim);
        let chosen = match named.and_then(TaskId::parse) {
            // An exact id may be that of a task that has ended: then that is the answer.
            Some(task) => Ok(task),
            None => {
                let active = self.background_tasks(call, Some(true), u32::MAX).await?;
                let active: Vec<_> = active.into_iter().map(|task| (task.task, task.task_name)).collect();
                choose(&active, named)
            }
        };
        let task = match chosen {
            Ok(task) => self.cancel_on_record(&call.caller, &call.scope, &task.to_string()).await,
            Err(not_chosen) => return Ok(Cancelled::none(&not_chosen.to_string())),
        };
        match task {
            Ok(task) => Ok(Cancelled::of(as_shown(&task, self.task_limits()))),
            Err(error) if error.code == Code::NotFound => Ok(Cancelled::none(&error.detail)),
            Err(error) => Err(error),
        }
    }

    /// The newest tasks of the call's user in its thread. As many as a user may have unfinished fit into `at_most`.
    async fn background_tasks(
        &self,
        call: &CallTool,
        is_active: Option<bool>,
        at_most: u32,
    ) -> Result<Vec<StoredTask>, VerbError> {
        let filter = TaskFilter {
            user: Some(call.scope.user.clone()),
            thread: Some(call.scope.thread.clone()),
            is_active,
            ..TaskFilter::default()
        };
        let store = &self.task_repository()?.store;
        store.list_tasks(filter, None, at_most.min(caribou_core::bounds::TASKS_PER_USER)).await.map_err(unread)
    }
}

/// The refusal of arguments of another form.
fn invalid(why: String) -> VerbError {
    VerbError::new(Code::Invalid, why)
}

fn as_shown(task: &StoredTask, limits: Option<&TaskLimits>) -> ShownTask {
    let status = task.snapshot.status;
    ShownTask {
        task_id: task.task,
        task_name: harmless(&task.task_name),
        status,
        error_code: status.error_code(),
        created_at: rfc3339_micros(task.created_us),
        updated_at: rfc3339_micros(task.updated_us),
        tracking_degraded: limits.is_some_and(|limits| task.poll_errors >= limits.tracking_degraded_after_errors),
        cancel_requested: task.is_cancel_requested,
    }
}

/// As it stands in a list. `None` never happens: the objects are ours, and JSON.
fn shown(tool: AgentTool) -> Option<ListedTool> {
    let object = RawValue::from_string(tool.tool().to_owned()).ok()?;
    Some(ListedTool {
        name: tool.name().into(),
        server: ServerName::from(OURS),
        connection: None,
        raw_name: tool.name().into(),
        tool: Arc::from(object),
        repaired: Arc::from([]),
        routing: Arc::default(),
        is_ours: true,
        support: Support::Forbidden,
    })
}
