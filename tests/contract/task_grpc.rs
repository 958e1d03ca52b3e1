//! Durable tasks over gRPC: the same rules as the task routes, and events that watchers acknowledge (contract 2.3, 6.9).

use std::time::Duration;

use caribou_proto::v1;
use caribou_proto::v1::ack_event::Answer;
use caribou_proto::v1::run_state::State;
use caribou_proto::v1::task_service_client::TaskServiceClient;
use caribou_proto::v1::watch_tasks::Request as Says;
use caribou_tests::{Caribou, Setup, caribou::binary, eventually};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};

const SOON: Duration = Duration::from_secs(60);

/// One that follows the reports of a server named `demo`, and tells watchers.
fn with_reports() -> Setup {
    let settings = "mcp_tasks: {poll_interval_seconds: 1, notify: {stream: true}}\n";
    let toolset = json!({
        "name": "report", "submit_tool": "report_submit", "status_tool": "report_status",
        "cancel_tool": "report_cancel", "input_tool": "report_input",
    });
    let program = binary("caribou-under-test");
    // Off: no tool but that of the toolset makes tasks, whatever the era.
    let entry =
        json!({ "command": program, "args": ["demo-server"], "native_tasks": "off", "task_toolsets": [toolset] });
    Setup::new().variable("CARIBOU_GRPC_LISTEN", "127.0.0.1:0").settings(settings).server("demo", entry)
}

/// The tasks of one replica, for one caller.
#[derive(Clone)]
struct Tasks {
    client: TaskServiceClient<Channel>,
    bearer: Option<String>,
}

impl Tasks {
    async fn of(caribou: &Caribou, bearer: Option<&str>) -> Self {
        let url = caribou.grpc_url().await.replacen("grpc", "http", 1);
        let channel = Endpoint::from_shared(url).unwrap().connect().await.unwrap();
        Self { client: TaskServiceClient::new(channel), bearer: bearer.map(str::to_owned) }
    }

    fn asks<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(bearer) = &self.bearer {
            request.metadata_mut().insert("authorization", format!("Bearer {bearer}").parse().unwrap());
        }
        request
    }

    async fn submitted(&mut self, scope: Option<v1::Scope>) -> Result<v1::SubmitTaskResponse, Status> {
        let arguments = Some(r#"{"topic":"ice"}"#.to_owned());
        let submit = v1::SubmitTaskRequest {
            name: "demo_report_submit".to_owned(),
            arguments,
            scope,
            run_id: Some("run-1".to_owned()),
            ..Default::default()
        };
        self.client.submit(self.asks(submit)).await.map(tonic::Response::into_inner)
    }

    /// A task in the thread `t1` of the caller.
    async fn submit(&mut self) -> String {
        self.submitted(t1()).await.unwrap().task_id.unwrap()
    }

    async fn get(&mut self, task: &str, scope: Option<v1::Scope>) -> Result<v1::Task, Status> {
        let request = self.asks(v1::GetTaskRequest { task_id: task.to_owned(), scope });
        self.client.get(request).await.map(tonic::Response::into_inner)
    }

    async fn until(&mut self, task: &str, status: v1::TaskStatus) -> v1::Task {
        let this = self.clone();
        eventually(SOON, status.as_str_name(), async || {
            let shown = this.clone().get(task, t1()).await.unwrap();
            (shown.status() == status).then_some(shown)
        })
        .await
    }

    async fn answer(&mut self, task: &str, answers: &str) -> Result<v1::Task, Status> {
        let request = self.asks(v1::AnswerTaskRequest {
            task_id: task.to_owned(),
            scope: t1(),
            input_id: "a".to_owned(),
            answers: answers.to_owned(),
        });
        self.client.answer(request).await.map(tonic::Response::into_inner)
    }

    async fn cancel(&mut self, task: &str) -> Result<v1::Task, Status> {
        let request = self.asks(v1::CancelTaskRequest { task_id: task.to_owned(), scope: t1() });
        self.client.cancel(request).await.map(tonic::Response::into_inner)
    }

    async fn watch(&mut self, user: &str, window: u32) -> Result<Watcher, Status> {
        let (says, said) = mpsc::channel(16);
        let subscribe = v1::SubscribeTasks { user_id: user.to_owned(), max_in_flight: window };
        says.send(v1::WatchTasks { request: Some(Says::Subscribe(subscribe)) }).await.unwrap();
        let said = futures::stream::unfold(said, |mut said| async { Some((said.recv().await?, said)) });
        let request = self.asks(said);
        let events = self.client.watch(request).await?.into_inner();
        Ok(Watcher { says, events })
    }
}

/// One stream of a watcher. Dropped, it is cut.
struct Watcher {
    says: mpsc::Sender<v1::WatchTasks>,
    events: Streaming<v1::TaskEvent>,
}

impl Watcher {
    async fn next(&mut self) -> v1::TaskEvent {
        let next = tokio::time::timeout(SOON, self.events.message()).await.expect("an event comes");
        next.unwrap().expect("the stream goes on")
    }

    async fn ack(&self, key: &str, answer: Answer) {
        let ack = v1::AckEvent { key: key.to_owned(), answer: Some(answer) };
        self.says.send(v1::WatchTasks { request: Some(Says::Ack(ack)) }).await.unwrap();
    }

    /// Why it ended.
    async fn refused(&mut self) -> Status {
        let next = tokio::time::timeout(SOON, self.events.message()).await.expect("the stream ends");
        next.unwrap_err()
    }
}

fn in_thread(user: &str, thread: &str) -> Option<v1::Scope> {
    Some(v1::Scope { user_id: user.to_owned(), thread_id: thread.to_owned() })
}

fn t1() -> Option<v1::Scope> {
    in_thread("", "t1")
}

fn accepted() -> Answer {
    Answer::Accepted(v1::EventAccepted {})
}

fn run(run_id: &str, state: State) -> Answer {
    Answer::Run(v1::RunState { run_id: run_id.to_owned(), state: state.into(), reason: String::new() })
}

fn code(status: &Status) -> &str {
    status.metadata().get("caribou-code").unwrap_or_else(|| panic!("no code: {status:?}")).to_str().unwrap()
}

/// The status of an event.
fn became(event: &v1::TaskEvent) -> String {
    let event: Value = serde_json::from_str(&event.event).unwrap();
    event["status"].as_str().unwrap().to_owned()
}

/// How far the newest event of a task is.
async fn notified(tasks: &mut Tasks, task: &str, status: v1::NotificationStatus) -> v1::TaskDetail {
    let this = tasks.clone();
    eventually(SOON, status.as_str_name(), async || {
        let detail = this.clone().get(task, t1()).await.unwrap().detail.unwrap();
        (detail.notification_status() == status).then_some(detail)
    })
    .await
}

#[tokio::test]
async fn a_task_is_submitted_listed_shown_answered_and_followed_to_its_end() {
    // Contract 2.3, 6.11.
    let caribou = with_reports().start().await;
    let mut tasks = Tasks::of(&caribou, None).await;
    let submitted = tasks.submitted(t1()).await.unwrap();
    let (task, answer) = (submitted.task_id.unwrap(), serde_json::from_str::<Value>(&submitted.result).unwrap());
    assert_eq!(answer["structuredContent"]["task_id"], json!(task));
    let other = v1::SubmitTaskRequest { name: "demo_add".to_owned(), scope: t1(), ..Default::default() };
    let refused = tasks.client.submit(tasks.asks(other)).await.unwrap_err();
    assert_eq!((refused.code(), code(&refused)), (Code::InvalidArgument, "invalid"), "{refused:?}");

    let second = tasks.submit().await;
    let list = |limit| v1::ListTasksRequest { scope: t1(), limit };
    let listed = tasks.client.list(list(0)).await.unwrap().into_inner().tasks;
    let names: Vec<&str> = listed.iter().map(|task| &*task.task_id).collect();
    assert_eq!(names, [&*second, &*task], "the newest first");
    assert!(listed.iter().all(|task| task.detail.is_none() && task.task_name == "report"));
    assert_eq!(tasks.client.list(list(1)).await.unwrap().into_inner().tasks.len(), 1);
    assert_eq!(code(&tasks.client.list(list(101)).await.unwrap_err()), "invalid");

    assert_eq!(code(&tasks.answer(&task, r#"{"format":"text"}"#).await.unwrap_err()), "conflict", "nothing is asked");
    let asking = tasks.until(&task, v1::TaskStatus::InputRequired).await.detail.unwrap();
    assert!(asking.input_required.unwrap().contains("format") && asking.last_poll_time.is_some());
    for (wrong, word) in [("hunter2", "invalid"), (r#"{"format":7}"#, "invalid")] {
        let refused = tasks.answer(&task, wrong).await.unwrap_err();
        assert_eq!((code(&refused), refused.message().contains("hunter2")), (word, false), "{refused:?}");
    }
    let watch = v1::WatchTaskRequest { task_id: task.clone(), scope: t1(), after: 0 };
    let changes = tasks.client.watch_task(watch).await.unwrap().into_inner();
    for _ in 0..2 {
        assert!(tasks.answer(&task, r#"{"format":"text"}"#).await.is_ok(), "the same again changes nothing");
    }
    let changes: Vec<v1::TaskChange> =
        tokio::time::timeout(SOON, changes.map(Result::unwrap).collect()).await.expect("the task ends");
    let numbers: Vec<i64> = changes.iter().map(|change| change.seq).collect();
    assert_eq!(numbers, (1..=i64::try_from(changes.len()).unwrap()).collect::<Vec<_>>());
    assert_eq!(changes.last().unwrap().status(), v1::TaskStatus::Completed);
    let done = tasks.get(&task, t1()).await.unwrap().detail.unwrap();
    assert_eq!(done.result.as_deref(), Some(r#""A text on ice: it runs in the background, asks, and ends.""#));
    let again = v1::WatchTaskRequest { task_id: task.clone(), scope: t1(), after: 99 };
    let rest = tasks.client.watch_task(again).await.unwrap().into_inner();
    assert_eq!(rest.collect::<Vec<_>>().await.len(), 0, "nothing can follow any more");

    assert!(tasks.cancel(&second).await.unwrap().cancel_requested);
    tasks.until(&second, v1::TaskStatus::Cancelled).await;
    assert_eq!(tasks.cancel(&task).await.unwrap().status(), v1::TaskStatus::Completed, "it ended before");
}

#[tokio::test]
async fn an_event_is_told_until_it_is_acknowledged_and_each_under_its_own_key() {
    // Contract 6.9; invariant N1. Events wait while nobody watches.
    let caribou = with_reports().start().await;
    let mut tasks = Tasks::of(&caribou, None).await;
    let task = tasks.submit().await;
    let waiting = notified(&mut tasks, &task, v1::NotificationStatus::Pending).await;
    assert_eq!(waiting.notification_attempt_count, 0, "nobody watching is no failure");

    let mut first = tasks.watch("", 0).await.unwrap();
    let event = first.next().await;
    assert_eq!((&*became(&event), &*event.task_id), ("input_required", &*task));
    assert_eq!((&*event.thread_id, event.run_id.as_deref(), &*event.server), ("t1", Some("run-1"), "demo"));
    assert_eq!(event.key, format!("mcp-task:{task}:{}:0", event.seq));
    assert!(event.agent_message.contains("BEGIN USER INPUT") && event.launched_run_id.is_none());
    // The acknowledgement is lost with the stream.
    drop(first);
    let mut second = tasks.watch("", 0).await.unwrap();
    let again = second.next().await;
    assert_eq!(again, event, "the same key, the same words");
    second.ack(&again.key, accepted()).await;
    let told = notified(&mut tasks, &task, v1::NotificationStatus::Delivered).await;
    assert_eq!(told.notification_attempt_count, 0);

    tasks.answer(&task, r#"{"format":"text"}"#).await.unwrap();
    let next = second.next().await;
    assert_eq!(became(&next), "completed");
    assert!(next.seq > event.seq && next.key != event.key, "{next:?}");
    second.ack(&next.key, accepted()).await;
    notified(&mut tasks, &task, v1::NotificationStatus::Delivered).await;
}

#[tokio::test]
async fn a_run_is_looked_after_until_it_has_succeeded_and_launched_anew_when_it_has_failed() {
    // Contract 6.9, claimed, dispatched, failed delivery, thread busy, thread missing, dead letter.
    let caribou = with_reports().start().await;
    let mut tasks = Tasks::of(&caribou, None).await;
    let task = tasks.submit().await;
    let mut watcher = tasks.watch("", 1).await.unwrap();
    let event = watcher.next().await;
    watcher.ack(&event.key, Answer::Busy(v1::ThreadBusy {})).await;
    let later = watcher.next().await;
    assert_eq!(later.key, event.key, "a busy thread is waited for");
    watcher.ack(&later.key, Answer::Launched(v1::RunLaunched { run_id: "r1".to_owned() })).await;
    let question = watcher.next().await;
    assert_eq!((question.launched_run_id.as_deref(), &question.key), (Some("r1"), &event.key));
    watcher.ack(&question.key, run("r1", State::Running)).await;
    let shown = notified(&mut tasks, &task, v1::NotificationStatus::Dispatched).await;
    assert_eq!(shown.notification_attempt_count, 0);
    let question = watcher.next().await;
    watcher.ack(&question.key, run("r1", State::Failed)).await;
    let anew = watcher.next().await;
    assert_eq!((anew.key, anew.attempt), (format!("mcp-task:{task}:{}:1", event.seq), 1));
    let key = format!("mcp-task:{task}:{}:1", event.seq);
    watcher.ack(&key, Answer::Launched(v1::RunLaunched { run_id: "r2".to_owned() })).await;
    let question = watcher.next().await;
    assert_eq!(question.launched_run_id.as_deref(), Some("r2"));
    watcher.ack(&key, run("r2", State::Succeeded)).await;
    notified(&mut tasks, &task, v1::NotificationStatus::Delivered).await;

    tasks.answer(&task, r#"{"format":"text"}"#).await.unwrap();
    let end = watcher.next().await;
    watcher.ack(&end.key, Answer::Gone(v1::ThreadGone { reason: "no such thread".to_owned() })).await;
    let dead = notified(&mut tasks, &task, v1::NotificationStatus::DeadLetter).await;
    assert_eq!(dead.notification_error.as_deref(), Some("no such thread"));
    let redeliver = || v1::RedeliverTaskRequest { task_id: task.clone() };
    tasks.client.redeliver(redeliver()).await.unwrap();
    let retold = watcher.next().await;
    assert_eq!(retold.key, end.key, "taken up under the key it had");
    watcher.ack(&retold.key, accepted()).await;
    notified(&mut tasks, &task, v1::NotificationStatus::Delivered).await;
    let nothing = tasks.client.redeliver(redeliver()).await.unwrap_err();
    assert_eq!((nothing.code(), code(&nothing)), (Code::Aborted, "conflict"));
}

#[tokio::test]
async fn a_watcher_has_no_more_than_it_said_and_each_event_goes_to_one() {
    // Invariants B1, N1.
    let caribou = with_reports().start().await;
    let mut tasks = Tasks::of(&caribou, None).await;
    for _ in 0..3 {
        tasks.submit().await;
    }
    let (mut slow, mut quick) = (tasks.watch("", 1).await.unwrap(), tasks.watch("", 1).await.unwrap());
    let kept = slow.next().await;
    let mut keys = vec![kept.key.clone()];
    for _ in 0..2 {
        let event = quick.next().await;
        quick.ack(&event.key, accepted()).await;
        keys.push(event.key);
    }
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 3, "each to one of them, and the slow one keeps nobody waiting: {keys:?}");
    slow.ack(&kept.key, accepted()).await;

    for wrong in [
        v1::WatchTasks { request: None },
        v1::WatchTasks { request: Some(Says::Subscribe(v1::SubscribeTasks::default())) },
        v1::WatchTasks { request: Some(Says::Ack(v1::AckEvent { key: kept.key.clone(), answer: None })) },
    ] {
        let mut watcher = tasks.watch("", 1).await.unwrap();
        watcher.says.send(wrong).await.unwrap();
        assert_eq!(watcher.refused().await.code(), Code::InvalidArgument);
    }
    assert_eq!(code(&tasks.watch("", 257).await.err().unwrap()), "invalid");
    let said = futures::stream::iter([v1::WatchTasks { request: None }]);
    assert_eq!(tasks.client.watch(said).await.unwrap_err().code(), Code::InvalidArgument, "it subscribes first");
}

#[tokio::test]
async fn a_replica_that_stops_ends_its_streams_and_loses_nothing() {
    let caribou = with_reports().start().await;
    let mut tasks = Tasks::of(&caribou, None).await;
    let task = tasks.submit().await;
    let mut watcher = tasks.watch("", 0).await.unwrap();
    let event = watcher.next().await;
    let stopped = tokio::spawn(caribou.stop());
    watcher.ack(&event.key, accepted()).await;
    let end = tokio::time::timeout(SOON, watcher.events.message()).await.expect("the stream ends");
    assert!(matches!(end, Ok(None) | Err(_)), "{task}: {end:?}");
    assert!(stopped.await.unwrap().0.success());
}

async fn key(setup: &Setup, more: &[&str]) -> String {
    let arguments = [&["keys", "create", "--json"], more].concat();
    let made = tokio::time::timeout(SOON, setup.command(&arguments).output()).await.expect("the command ends").unwrap();
    let made: Value = serde_json::from_slice(&made.stdout).unwrap_or_else(|_| panic!("{made:?}"));
    made["key"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn others_see_neither_the_tasks_of_a_user_nor_their_events() {
    // Contract 2.1, 2.3; invariant P1.
    let setup = with_reports().variable("CARIBOU_AUTH_MODE", "api_keys");
    let ann = key(&setup, &["--user", "ann"]).await;
    let bob = key(&setup, &["--user", "bob"]).await;
    let root = key(&setup, &["--user", "root", "--role", "admin"]).await;
    let caribou = setup.start().await;
    let mut anns = Tasks::of(&caribou, Some(&ann)).await;
    let mut bobs = Tasks::of(&caribou, Some(&bob)).await;
    let mut admin = Tasks::of(&caribou, Some(&root)).await;
    let task = anns.submit().await;
    assert!(anns.get(&task, t1()).await.is_ok());
    let missing = bobs.get(&task, t1()).await.unwrap_err();
    assert_eq!((missing.code(), missing.message()), (Code::NotFound, "MCP task not found"));
    assert_eq!(bobs.cancel(&task).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(bobs.get(&task, in_thread("ann", "t1")).await.unwrap_err().code(), Code::PermissionDenied);
    let all = || v1::ListAllTasksRequest::default();
    let denied = bobs.client.list_all(bobs.asks(all())).await.unwrap_err();
    assert_eq!((denied.code(), code(&denied)), (Code::PermissionDenied, "denied"));
    let redeliver = v1::RedeliverTaskRequest { task_id: task.clone() };
    assert_eq!(code(&anns.client.redeliver(anns.asks(redeliver)).await.unwrap_err()), "denied");
    let nobody = Tasks::of(&caribou, None).await.watch("", 0).await.err().unwrap();
    assert_eq!((nobody.code(), code(&nobody)), (Code::Unauthenticated, "denied"));

    let page = admin.client.list_all(admin.asks(all())).await.unwrap().into_inner();
    let seen: Vec<_> = page.tasks.iter().map(|seen| (&*seen.user_id, &*seen.thread_id, &*seen.server)).collect();
    assert_eq!((seen, &*page.next_page_token), (vec![("ann", "t1", "demo")], ""));
    let first = v1::ListAllTasksRequest { page_size: 1, ..all() };
    let page = admin.client.list_all(admin.asks(first)).await.unwrap().into_inner();
    let rest = v1::ListAllTasksRequest { page_token: page.next_page_token, ..all() };
    assert_eq!(admin.client.list_all(admin.asks(rest)).await.unwrap().into_inner().tasks.len(), 0);
    let odd = v1::ListAllTasksRequest { page_token: "7".to_owned(), ..all() };
    assert_eq!(code(&admin.client.list_all(admin.asks(odd)).await.unwrap_err()), "invalid");

    assert_eq!(code(&bobs.watch("ann", 0).await.err().unwrap()), "denied");
    let mut bobs_own = bobs.watch("", 0).await.unwrap();
    anns.until(&task, v1::TaskStatus::InputRequired).await;
    let bobs_task = bobs.submit().await;
    let event = bobs_own.next().await;
    assert_eq!((&*event.user_id, &*event.task_id), ("bob", &*bobs_task), "ann's event is older and not told to bob");
    let mut all = admin.watch("", 0).await.unwrap();
    let event = all.next().await;
    assert_eq!((&*event.user_id, &*event.task_id), ("ann", &*task), "admins are told of everybody's");
}

#[tokio::test]
async fn without_a_database_or_the_setting_nobody_watches() {
    // Contract 2.3, 503 bodies.
    let setup = || Setup::new().variable("CARIBOU_GRPC_LISTEN", "127.0.0.1:0");
    let caribou = setup().settings("database: {backend: memory}\n").start().await;
    let mut tasks = Tasks::of(&caribou, None).await;
    let none = tasks.client.list(v1::ListTasksRequest::default()).await.unwrap_err();
    assert_eq!((none.code(), none.message()), (Code::Unavailable, "MCP task repo not available"));
    let cancel = tasks.cancel("mcp-task-00000000000000000000000000000000").await.unwrap_err();
    assert_eq!((cancel.code(), cancel.message()), (Code::Unavailable, "MCP task service not available"));

    let caribou = setup().start().await;
    let off = Tasks::of(&caribou, None).await.watch("", 0).await.err().unwrap();
    assert_eq!((off.code(), code(&off)), (Code::Unavailable, "unavailable"));
    assert!(off.message().contains("mcp_tasks.notify.stream"), "{off:?}");
}
