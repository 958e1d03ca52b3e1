//! Tasks of the protocol itself, with the drivers of both eras (mcp.md §9, §14.5; contract 6.4, 6.12).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use caribou_core::bounds::TASKS_PER_USER;
use caribou_core::era::Era;
use caribou_core::failure::Code;
use caribou_core::ids::{BootId, ServerName};
use caribou_core::task::native::Wish;
use caribou_core::task::{SnapshotFingerprint, Status, TaskId, TaskLimits};
use caribou_mcp::tasks::{LegacyTasks, ModernTasks};
use caribou_ports::store::{Replicas as _, StoredTask, SubmitKey, TaskFilter, TaskIntent, Tasks as _};
use caribou_runtime::{CallTool, DurableTasks, Options, Outside, TaskReach, VerbError};
use caribou_store::Memory;
use serde_json::{Value, json};

use super::{ann, replica, until};
use crate::fake::{anybody, call};
use crate::followed::{Setting, document};

const TAKES: &str = r#"{"tasks":{"requests":{"tools":{"call":{}}}}}"#;
const ANNOUNCES: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// A server `n` with the tools `long` (a task is required), `either` (optional) and `plain`.
struct Native {
    setting: Setting,
    store: Memory,
}

fn server(more: Value) -> Value {
    let mut server = json!({ "type": "http", "url": "http://127.0.0.1:1/mcp" });
    server.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "n": server })
}

impl Native {
    async fn new(era: Era, capabilities: &'static str) -> Self {
        Self::with(era, Some(capabilities), server(json!({})), true).await
    }

    async fn with(era: Era, capabilities: Option<&'static str>, servers: Value, is_followed: bool) -> Self {
        let store = Memory::default();
        store.begin(replica()).await.unwrap();
        let limits = TaskLimits::default();
        let tasks = is_followed.then(|| DurableTasks {
            store: Arc::new(store.clone()),
            drivers: vec![Arc::new(LegacyTasks::new(limits)), Arc::new(ModernTasks::new(limits))],
            sinks: Vec::new(),
            is_watched: false,
        });
        let setting = Setting::within(servers, Options::default(), |outside| Outside { tasks, ..outside }).await;
        let fake = &setting.fake;
        *fake.era.lock().unwrap() = era;
        *fake.capabilities.lock().unwrap() = capabilities;
        *fake.tools.lock().unwrap() = ["long", "either", "plain"].map(str::to_owned).into();
        fake.task_support.lock().unwrap().extend([("long", "required"), ("either", "optional")]);
        Self { setting, store }
    }

    /// What the server answers from now on, by tool or method.
    fn says(&self, name: &'static str, result: Value) {
        self.setting.fake.results.lock().unwrap().insert(name, result.to_string());
    }

    async fn call(&self, name: &str) -> Result<Value, VerbError> {
        self.ask(call(name, "t")).await
    }

    async fn as_task(&self, name: &str) -> Result<Value, VerbError> {
        self.ask(CallTool { task: Wish::Asked, ..call(name, "t") }).await
    }

    async fn ask(&self, call: CallTool) -> Result<Value, VerbError> {
        let called = self.setting.runtime.call_tool(call).await?;
        Ok(serde_json::from_str(called.result.get()).unwrap())
    }

    async fn stored(&self) -> Vec<StoredTask> {
        self.store.list_tasks(TaskFilter::default(), None, 100).await.unwrap()
    }

    /// Whether each call that reached the server spoke of tasks.
    fn spoke_of_tasks(&self) -> Vec<bool> {
        self.setting.fake.sent.lock().unwrap().iter().map(|sent| sent.task).collect()
    }

    fn asked(&self, method: &str) -> usize {
        self.setting.fake.asked.lock().unwrap().iter().filter(|asked| *asked == method).count()
    }

    async fn reaches(&self, status: Status) -> StoredTask {
        until("the status", async || self.stored().await.iter().any(|task| task.snapshot.status == status)).await;
        self.stored().await.remove(0)
    }
}

fn legacy_task(id: &str) -> Value {
    json!({ "task": { "taskId": id, "status": "working", "ttl": null, "pollInterval": 1000 } })
}

fn modern_task(id: &str) -> Value {
    json!({ "resultType": "task", "taskId": id, "status": "working", "ttlMs": null, "pollIntervalMs": 1000 })
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_must_be_called_as_a_task_is_and_one_that_may_be_when_the_caller_asks() {
    // mcp.md §9.1, tool level and who decides; contract 6.4 (4).
    let native = Native::new(Era::Legacy, TAKES).await;
    native.says("long", legacy_task("remote-1"));
    let told = native.call("n_long").await.unwrap();
    let (said, task) = (&told["structuredContent"], native.stored().await.remove(0));
    assert_eq!(said["task_id"], task.task.to_string());
    assert_eq!((&said["task_name"], &said["status"]), (&json!("long"), &json!("submitted")));
    assert!(!told.to_string().contains("remote-1"), "contract 6.4: the remote's name: {told}");

    assert!(native.call("n_either").await.unwrap().is_array(), "a plain call, by default");
    native.says("either", legacy_task("remote-2"));
    assert!(native.as_task("n_either").await.unwrap()["structuredContent"]["task_id"].is_string());
    assert_eq!(native.spoke_of_tasks()[..3], [true, false, true]);

    let calls = native.setting.fake.calls.load(Ordering::SeqCst);
    let refused = native.as_task("n_plain").await.unwrap_err();
    assert_eq!(refused.code, Code::Invalid);
    assert!(refused.detail.starts_with("tool `n_plain` cannot be called as a task"), "{refused}");
    assert_eq!(native.setting.fake.calls.load(Ordering::SeqCst), calls, "nothing reached the server");
}

#[tokio::test(start_paused = true)]
async fn a_task_of_the_legacy_era_is_followed_to_its_result() {
    // mcp.md §14.5; contract 6.5.
    let native = Native::new(Era::Legacy, TAKES).await;
    native.says("long", legacy_task("remote-1"));
    native.says("tasks/get", json!({ "taskId": "remote-1", "status": "working" }));
    native.call("n_long").await.unwrap();
    until("a poll", async || native.asked("tasks/get") > 0).await;
    native.says("tasks/get", json!({ "taskId": "remote-1", "status": "completed" }));
    native.says("tasks/result", json!({ "content": [{ "type": "text", "text": "done" }] }));
    let ended = native.reaches(Status::Completed).await;
    let read = native.setting.runtime.read_task(&anybody(), &ann(), &ended.task.to_string()).await.unwrap();
    assert!(read.snapshot.result.is_some(), "{read:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_declares_nothing_or_is_switched_off_is_never_sent_the_wish() {
    // mcp.md §9.1, capability.
    let off = json!({ "native_tasks": "off" });
    for (capabilities, servers) in
        [(None, server(json!({}))), (Some("{}"), server(json!({}))), (Some(TAKES), server(off.clone()))]
    {
        let native = Native::with(Era::Legacy, capabilities, servers, true).await;
        assert!(native.call("n_long").await.unwrap().is_array());
        assert_eq!(native.as_task("n_long").await.unwrap_err().code, Code::Invalid);
        assert_eq!(native.spoke_of_tasks(), [false]);
    }
    let off = Native::with(Era::Modern, Some(ANNOUNCES), server(off), true).await;
    off.says("plain", modern_task("remote-1"));
    off.call("n_plain").await.unwrap();
    assert_eq!(off.spoke_of_tasks(), [false]);
    assert!(off.stored().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn where_nobody_follows_tasks_none_is_asked_for_or_offered() {
    // Contract 6.11, wrapper without an installed runtime; architecture.md §10, one declared profile.
    let native = Native::with(Era::Legacy, Some(TAKES), server(json!({})), false).await;
    for refused in [native.call("n_long").await, native.as_task("n_either").await] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.code, Code::Unavailable);
        assert!(refused.detail.contains("mcp_tasks.enabled") && refused.detail.contains("SQL"), "{refused}");
    }
    assert!(native.call("n_either").await.unwrap().is_array());
    assert_eq!(native.spoke_of_tasks(), [false]);
    assert!(native.setting.fake.declared.lock().unwrap().iter().all(|profile| profile == "{}"));
    let modern = Native::with(Era::Modern, Some(ANNOUNCES), server(json!({})), false).await;
    modern.call("n_plain").await.unwrap();
    assert_eq!(modern.spoke_of_tasks(), [false]);

    let followed = Native::new(Era::Legacy, TAKES).await;
    followed.call("n_plain").await.unwrap();
    let declared = followed.setting.fake.declared.lock().unwrap().clone();
    assert!(declared.iter().all(|profile| profile == r#"{"elicitation":{}}"#), "{declared:?}");
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_may_answer_any_call_by_a_task() {
    // mcp.md §9.2, who decides and client; contract 6.4 (4).
    let native = Native::new(Era::Modern, ANNOUNCES).await;
    assert!(native.call("n_plain").await.unwrap().is_array(), "a result is a result");
    native.says("plain", modern_task("remote-1"));
    native.says("tasks/get", json!({ "taskId": "remote-1", "status": "completed", "result": { "content": [] } }));
    let told = native.as_task("n_plain").await.unwrap();
    assert_eq!((&told["structuredContent"]["task_name"], native.spoke_of_tasks()), (&json!("plain"), vec![true, true]));
    assert!(!told.to_string().contains("remote-1"));
    native.reaches(Status::Completed).await;

    // Contract 6.4, compensation: a task that is followed already is left alone.
    let again = native.call("n_plain").await.unwrap_err();
    assert_eq!(again.code, Code::Conflict);
    assert_eq!((native.asked("tasks/cancel"), native.stored().await.len()), (0, 1));
    native.says("plain", json!({ "resultType": "task", "status": "working" }));
    assert_eq!(native.call("n_plain").await.unwrap_err().code, Code::UpstreamError, "a task without a name");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_made_and_cannot_be_stored_is_cancelled_at_its_server() {
    // Contract 6.4, compensation.
    let native = Native::new(Era::Modern, ANNOUNCES).await;
    for number in 0..TASKS_PER_USER {
        native.store.note_intent(intent(number)).await.unwrap();
    }
    native.says("plain", modern_task("remote-1"));
    native.says("tasks/cancel", json!({}));
    native.says("tasks/get", json!({ "taskId": "remote-1", "status": "cancelled" }));
    let refused = native.call("n_plain").await.unwrap_err();
    assert_eq!(refused.code, Code::Busy);
    assert!(refused.detail.contains("which is cancelled") && refused.retry_after.is_some(), "{refused}");
    assert_eq!(native.asked("tasks/cancel"), 1);
}

fn intent(number: u32) -> TaskIntent {
    let mut name = [7; 16];
    name[..4].copy_from_slice(&number.to_be_bytes());
    TaskIntent {
        task: TaskId(name),
        submit_key: SubmitKey(name),
        scope: ann(),
        server: ServerName::from("n"),
        driver: "other".to_owned(),
        task_name: "t".to_owned(),
        snapshot: SnapshotFingerprint(0),
        is_pinned: false,
        run_id: None,
        tool_call_id: None,
        owner: BootId::from("boot"),
        lease: std::time::Duration::from_secs(3_600),
        at_most: TASKS_PER_USER,
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_stays_with_the_server_that_accepted_it() {
    // Contract 6.12, a server that is missing: retried; architecture.md §10, tasks carry their fingerprint.
    let native = Native::new(Era::Legacy, TAKES).await;
    native.says("long", legacy_task("remote-1"));
    native.says("tasks/get", json!({ "taskId": "remote-1", "status": "working" }));
    native.call("n_long").await.unwrap();
    until("a poll", async || native.asked("tasks/get") > 0).await;
    for (edited, why) in [
        (server(json!({ "url": "http://127.0.0.1:2/mcp" })), "was changed after it had accepted the task"),
        (json!({}), "is not configured, or disabled"),
        (server(json!({ "enabled": false })), "is not configured, or disabled"),
    ] {
        native.setting.memory.edit(document(&edited));
        let view = native.setting.runtime.read_config(&anybody()).await.unwrap();
        assert!(view.pending_restart.is_empty(), "a server without toolsets is free to change");
        until("an error of that kind", async || {
            native.stored().await[0].last_poll_error.as_ref().is_some_and(|error| error.contains(why))
        })
        .await;
        assert!(!native.stored().await[0].snapshot.status.is_terminal());
    }
    let before = native.asked("tasks/get");
    native.setting.memory.edit(document(&server(json!({ "description": "back", "tool_call_timeout": 9 }))));
    native.setting.runtime.read_config(&anybody()).await.unwrap();
    until("it is asked again", async || native.asked("tasks/get") > before).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_answered_at_once_is_no_task() {
    // mcp.md §9.1: a receiver may take no notice of the wish.
    let native = Native::new(Era::Legacy, TAKES).await;
    native.says("long", json!({ "content": [{ "type": "text", "text": "now" }] }));
    assert_eq!(native.call("n_long").await.unwrap()["content"][0]["text"], "now");
    assert!(native.stored().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_caller_says_of_tasks_decides_what_its_call_becomes() {
    // mcp.md §14.5; §9.2, undeclared client.
    let native = Native::new(Era::Legacy, TAKES).await;
    let ask = async |wish: Wish, name: &str| native.ask(CallTool { task: wish, ..call(name, "t") }).await;
    let refused = ask(Wish::Refused, "n_long").await.unwrap_err().upstream.unwrap();
    assert_eq!(refused.code, -32_021);
    let needed = r#"{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
    assert_eq!(refused.data.unwrap().get(), needed);
    assert!(native.spoke_of_tasks().is_empty() && native.stored().await.is_empty(), "nothing reached the server");
    for wish in [Wish::Refused, Wish::Spared, Wish::Unsaid] {
        assert!(ask(wish, "n_either").await.unwrap().is_array(), "a plain call: {wish:?}");
    }
    native.says("either", legacy_task("remote-1"));
    assert!(ask(Wish::Taken, "n_either").await.unwrap()["structuredContent"]["task_id"].is_string());
    assert_eq!(native.spoke_of_tasks(), [false, false, false, true]);

    let modern = Native::new(Era::Modern, ANNOUNCES).await;
    for wish in [Wish::Refused, Wish::Spared, Wish::Taken] {
        modern.ask(CallTool { task: wish, ..call("n_plain", "t") }).await.unwrap();
    }
    assert_eq!(modern.spoke_of_tasks(), [false, false, true], "offered in the name of who takes one only");
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_kept_as_the_result_of_a_task_that_ends_like_every_other() {
    // mcp.md §17, B9; invariant T1.
    let native = Native::new(Era::Legacy, TAKES).await;
    let runtime = &native.setting.runtime;
    let result = serde_json::value::RawValue::from_string(r#"{"content":[],"z":1.0}"#.to_owned()).unwrap();
    let made = runtime.keep_answer((&ann(), &"r".into()), "n_either", &result).await.unwrap();
    assert_eq!(native.stored().await.remove(0).task, made.task, "on record as soon as it has a name");
    native.reaches(Status::Completed).await;
    let reach = TaskReach { user: ann().user, thread: None, server: None };
    let shown = runtime.client_task(&anybody(), &reach, &made.task.to_string()).await.unwrap();
    assert_eq!(shown.stored.snapshot.result.as_deref(), Some(result.get()));
    assert_eq!(native.setting.fake.calls.load(Ordering::SeqCst), 0, "its server is not asked");
    let gone = runtime.keep_answer((&ann(), &"r".into()), "n_gone", &result).await.unwrap_err();
    assert_eq!(gone.code, Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn a_task_is_within_reach_of_its_user_and_of_who_names_its_thread_and_server() {
    // Invariant P1.
    let native = Native::new(Era::Legacy, TAKES).await;
    native.says("long", legacy_task("remote-1"));
    native.call("n_long").await.unwrap();
    let (runtime, task) = (&native.setting.runtime, native.stored().await.remove(0).task.to_string());
    let is_seen = async |user: &str, thread: Option<&str>, server: Option<&str>| {
        let (thread, server) = (thread.map(Into::into), server.map(Into::into));
        let reach = TaskReach { user: user.into(), thread, server };
        let one = runtime.client_task(&anybody(), &reach, &task).await;
        let (all, _) = runtime.client_tasks(&anybody(), &reach, None, 10).await.unwrap();
        assert_eq!(one.is_ok(), !all.is_empty(), "what is seen is listed");
        one.is_ok()
    };
    let user = ann().user;
    assert!(is_seen(user.as_str(), None, None).await && is_seen(user.as_str(), Some("t"), Some("n")).await);
    assert!(!is_seen("bob", None, None).await && !is_seen(user.as_str(), Some("u"), None).await);
    assert!(!is_seen(user.as_str(), None, Some("m")).await);
}
