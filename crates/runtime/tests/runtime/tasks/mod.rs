//! Durable tasks with a store in memory and a driver that does as it is told.

mod agent_tools;
mod exposure;
mod frozen;
mod native;
mod sessions;
mod submit;
mod verbs;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou_core::failure::Code;
use caribou_core::ids::{BootId, Scope};
use caribou_core::task::parse::Misread;
use caribou_core::task::{Report, Status};
use caribou_ports::BoxFuture;
use caribou_ports::store::{NewAnswer, Replica, Replicas as _, StoredTask, TaskFilter, Tasks as _};
use caribou_ports::task_driver::{
    DriverError, RemoteError, RemoteTask, SubmitTask, Submitted, TaskDriver, TaskHandle, Upstream,
};
use caribou_runtime::{DurableTasks, Options, Outside};
use caribou_store::Memory;
use serde_json::{Value, json};

use crate::fake::call;
use crate::followed::Setting;

/// What the next submit does.
#[derive(Clone, Debug)]
pub(super) enum Does {
    /// The remote accepts under this name.
    Accept(String),
    Refuse,
    Unreadable,
    Ambiguous,
    Hang,
}

/// A driver that does as it is told.
pub(super) struct Scripted {
    pub(super) does: Mutex<Does>,
    pub(super) submits: AtomicUsize,
    /// The remote names that were cancelled.
    pub(super) cancelled: Mutex<Vec<String>>,
    pub(super) polled: AtomicUsize,
    pub(super) cancel_takes: Duration,
    pub(super) status: Mutex<Status>,
    /// The tool that is asked how a task is.
    pub(super) status_tool: Mutex<&'static str>,
}

impl Scripted {
    pub(super) fn new(does: Does) -> Self {
        Self {
            does: Mutex::new(does),
            submits: AtomicUsize::new(0),
            cancelled: Mutex::default(),
            polled: AtomicUsize::new(0),
            cancel_takes: Duration::ZERO,
            status: Mutex::new(Status::Working),
            status_tool: Mutex::new("status"),
        }
    }
}

impl TaskDriver for Scripted {
    fn name(&self) -> &'static str {
        "ordinary-tools"
    }

    fn submit<'a>(
        &'a self,
        upstream: &'a dyn Upstream,
        submit: SubmitTask<'a>,
    ) -> BoxFuture<'a, Result<Submitted, DriverError>> {
        Box::pin(async move {
            self.submits.fetch_add(1, Ordering::SeqCst);
            upstream.call_tool("submit", submit.arguments.map(ToOwned::to_owned), None).await?;
            let does = self.does.lock().unwrap().clone();
            match does {
                Does::Accept(remote_id) => Ok(Submitted::Task(RemoteTask {
                    remote_id,
                    driver_data: "{}".to_owned(),
                    poll_after_seconds: Some(7.0),
                })),
                Does::Refuse => Err(Misread::ToolFailed("no paper".to_owned()).into()),
                Does::Unreadable => Err(Misread::Protocol("structuredContent is missing".to_owned()).into()),
                Does::Ambiguous => Err(RemoteError::new(Code::OutcomeUnknown, "the answer was lost").into()),
                Does::Hang => std::future::pending().await,
            }
        })
    }

    fn status<'a>(
        &'a self,
        upstream: &'a dyn Upstream,
        _: TaskHandle<'a>,
    ) -> BoxFuture<'a, Result<Report, DriverError>> {
        Box::pin(async move {
            let tool = *self.status_tool.lock().unwrap();
            upstream.call_tool(tool, None, None).await?;
            self.polled.fetch_add(1, Ordering::SeqCst);
            Ok(Report::of(*self.status.lock().unwrap()))
        })
    }

    fn cancel<'a>(&'a self, _: &'a dyn Upstream, task: TaskHandle<'a>) -> BoxFuture<'a, Result<Report, DriverError>> {
        Box::pin(async move {
            tokio::time::sleep(self.cancel_takes).await;
            self.cancelled.lock().unwrap().push(task.remote_id.to_owned());
            Ok(Report::of(Status::Cancelled))
        })
    }

    fn answer<'a>(
        &'a self,
        _: &'a dyn Upstream,
        _: TaskHandle<'a>,
        _: &'a [NewAnswer],
    ) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A task server `r` with `more` in its entry, and what its tasks are kept and driven by.
pub(super) struct Tasking {
    pub(super) setting: Setting,
    pub(super) store: Memory,
    pub(super) driver: Arc<Scripted>,
}

pub(super) fn task_server(more: &Value) -> Value {
    let mut server = json!({ "type": "http", "url": "http://127.0.0.1:1/mcp", "task_toolsets": [
        { "name": "report", "submit_tool": "submit", "status_tool": "status", "cancel_tool": "cancel" }
    ]});
    server.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server
}

impl Tasking {
    pub(super) async fn new(driver: Scripted) -> Self {
        Self::with(
            driver,
            json!({ "r": task_server(&json!({})) }),
            Options::default(),
            &["submit", "status", "cancel", "other"],
        )
        .await
    }

    pub(super) async fn with(driver: Scripted, servers: Value, options: Options, tools: &[&str]) -> Self {
        let (store, driver) = (Memory::default(), Arc::new(driver));
        store.begin(replica()).await.unwrap();
        let tasks = DurableTasks {
            store: Arc::new(store.clone()),
            drivers: vec![driver.clone()],
            sinks: Vec::new(),
            is_watched: false,
        };
        let setting = Setting::within(servers, options, |outside| Outside { tasks: Some(tasks), ..outside }).await;
        *setting.fake.tools.lock().unwrap() = tools.iter().map(|tool| (*tool).to_owned()).collect();
        Self { setting, store, driver }
    }

    /// What a call of the submitting tool in thread `t` of ann says.
    pub(super) async fn submit(&self) -> Result<Value, caribou_runtime::VerbError> {
        let called = self.setting.runtime.call_tool(call("r_submit", "t")).await?;
        Ok(serde_json::from_str(called.result.get()).unwrap())
    }

    /// All tasks of everybody.
    pub(super) async fn stored(&self) -> Vec<StoredTask> {
        self.store.list_tasks(TaskFilter::default(), None, 100).await.unwrap()
    }
}

/// This life, as whoever starts it puts it on record.
pub(super) fn replica() -> Replica {
    Replica::alone(BootId::from("boot"), "h", "0")
}

pub(super) fn ann() -> Scope {
    Scope::new(Some("ann"), Some("t"))
}

/// Waits, in virtual time, until `is` holds.
pub(super) async fn until(what: &str, is: impl AsyncFn() -> bool) {
    let limit = tokio::time::Instant::now() + Duration::from_secs(600);
    while !is().await {
        assert!(tokio::time::Instant::now() < limit, "not within ten minutes: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
