//! Caribou before one task server named `s`, and the words such a server speaks.

use std::time::Duration;

use caribou_tests::fake::Log;
use caribou_tests::{Answer, Caribou, HttpFake, Setup, StdioFake, eventually};
use serde_json::{Map, Value, json};

/// How long anything may take on a loaded machine.
pub(super) const SOON: Duration = Duration::from_secs(60);

/// The tasks of the thread that everything here is submitted in.
pub(super) const THREAD: &str = "/api/threads/t1/mcp-tasks";

/// Polls as often as a setting allows.
pub(super) const FAST: &str = "poll_interval_seconds: 1";

/// The toolset of every server here.
pub(super) fn toolset() -> Value {
    json!({ "name": "report", "submit_tool": "submit", "status_tool": "status", "cancel_tool": "cancel",
            "input_tool": "input" })
}

/// A task in this state, with these further members, as a status or cancel tool tells of it.
pub(super) fn says(status: &str, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("members are an object") };
    let mut told = Map::new();
    told.insert("task_id".to_owned(), json!("$TASK"));
    told.insert("status".to_owned(), json!(status));
    told.extend(more);
    json!([{ "structured": told }])
}

/// A task that goes on, to be asked about again very soon.
pub(super) fn running() -> Value {
    says("running", json!({ "poll_after_seconds": 0.05 }))
}

/// What a server does that accepts every task and tells of each by these turns.
pub(super) fn script(status: Value, cancel: Value) -> Value {
    json!({ "calls": {
        "submit": [{ "structured": { "task_id": "remote-$TURN", "status": "running" } }],
        "status": [{ "turns": status }],
        "cancel": [{ "turns": cancel }],
        "input": [{ "structured": { "taken": true } }],
        "other": ["default"],
    } })
}

/// One whose tasks run until they are cancelled.
pub(super) fn endless() -> Value {
    script(json!([running()]), json!([says("cancelled", json!({}))]))
}

/// The same script with another way to do one tool.
pub(super) fn but(mut script: Value, tool: &str, steps: Value) -> Value {
    script["calls"][tool] = steps;
    script
}

/// Settings of tasks, as a flow mapping without its braces.
pub(super) fn mcp_tasks(settings: &str) -> String {
    format!("mcp_tasks: {{{settings}}}\n")
}

/// The fake behind a stand, for as long as it stands.
enum Fake {
    Http(HttpFake),
    Stdio(StdioFake),
}

/// Caribou before one task server.
pub(super) struct Stand {
    pub(super) caribou: Caribou,
    fake: Fake,
}

impl Stand {
    /// Over HTTP, polled as often as a setting allows.
    pub(super) async fn http(script: Value) -> Self {
        Self::http_with(script, FAST, json!({})).await
    }

    /// Over HTTP, with these settings of tasks and further members of the server's entry.
    pub(super) async fn http_with(script: Value, settings: &str, members: Value) -> Self {
        let fake = HttpFake::start(script).await;
        Self::before(fake, Setup::new().settings(&mcp_tasks(settings)), members).await
    }

    /// Over HTTP, before a fake that stands already.
    pub(super) async fn before(fake: HttpFake, setup: Setup, members: Value) -> Self {
        let entry = with_toolset(fake.entry_with(members));
        Self { caribou: setup.server("s", entry).start().await, fake: Fake::Http(fake) }
    }

    /// Over stdio, with these settings of tasks and further members of the server's entry.
    pub(super) async fn stdio(script: Value, settings: &str, members: Value) -> Self {
        let setup = Setup::new().settings(&mcp_tasks(settings));
        let fake = StdioFake::new(setup.home(), "fake", script);
        Self::before_child(fake, setup, members).await
    }

    /// Over stdio, with a fake whose script and log are there already.
    pub(super) async fn before_child(fake: StdioFake, setup: Setup, members: Value) -> Self {
        let entry = with_toolset(fake.entry_with(members));
        Self { caribou: setup.server("s", entry).start().await, fake: Fake::Stdio(fake) }
    }

    /// Caribou by itself, and the fake that goes on without it.
    pub(super) fn parted(self) -> (Caribou, HttpFake) {
        let Fake::Http(fake) = self.fake else { panic!("a server over HTTP") };
        (self.caribou, fake)
    }

    /// The same over stdio.
    pub(super) fn parted_child(self) -> (Caribou, StdioFake) {
        let Fake::Stdio(fake) = self.fake else { panic!("a child process") };
        (self.caribou, fake)
    }

    /// What the server saw.
    pub(super) fn log(&self) -> Log {
        match &self.fake {
            Fake::Http(fake) => fake.log(),
            Fake::Stdio(fake) => fake.log(),
        }
    }

    /// How often a tool of the server was called.
    pub(super) fn calls(&self, tool: &str) -> usize {
        self.log().calls(tool).len()
    }

    /// Waits until a tool of the server was called so often.
    pub(super) async fn until_called(&self, tool: &str, times: usize) {
        eventually(SOON, &format!("{times} calls of {tool}"), async || (self.calls(tool) >= times).then_some(())).await;
    }

    /// Submits a task, and gives what was answered.
    pub(super) async fn try_submit(&self) -> Answer {
        self.caribou.call_in("t1", "s_submit", json!({ "topic": "ice" })).await
    }

    /// Submits a task that is accepted: its name here.
    pub(super) async fn submit(&self) -> String {
        task_of(&self.try_submit().await)
    }

    /// A task as it is shown.
    pub(super) async fn shown(&self, task: &str) -> Value {
        self.caribou.get(&format!("{THREAD}/{task}")).await.json()
    }

    /// Waits until a task is shown in this state.
    pub(super) async fn until(&self, task: &str, status: &str) -> Value {
        self.until_that(task, status, |shown| shown["status"] == status).await
    }

    /// Waits until something holds of a task as it is shown.
    pub(super) async fn until_that(&self, task: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        eventually(SOON, what, async || Some(self.shown(task).await).filter(|shown| holds(shown))).await
    }

    /// Submits a task and waits for its end.
    pub(super) async fn ended(&self) -> Value {
        let task = self.submit().await;
        let is_over = |shown: &Value| ["completed", "failed", "cancelled"].contains(&shown["status"].as_str().unwrap());
        self.until_that(&task, "an end", is_over).await
    }

    /// Asks for a task to be cancelled.
    pub(super) async fn cancel(&self, task: &str) -> Answer {
        self.caribou.post(&format!("{THREAD}/{task}/cancel"), "").await
    }

    /// The tasks of the thread, as they are listed.
    pub(super) async fn listed(&self) -> Vec<Value> {
        self.caribou.get(THREAD).await.json().as_array().cloned().unwrap()
    }

    /// The events of a task: what each said.
    pub(super) async fn events(&self, task: &str) -> Vec<Value> {
        let listed = self.caribou.get(&format!("{THREAD}/{task}/events")).await.json();
        let events = listed["events"].as_array().cloned().unwrap_or_else(|| panic!("{listed}"));
        events.into_iter().map(|event| event["event"].clone()).collect()
    }
}

/// The name of a task that was accepted.
pub(super) fn task_of(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{answer:?}");
    let task = answer.json()["result"]["structuredContent"]["task_id"].as_str().map(str::to_owned);
    task.unwrap_or_else(|| panic!("no task: {answer:?}"))
}

/// The entry of a task server.
pub(super) fn with_toolset(mut entry: Value) -> Value {
    if entry.get("task_toolsets").is_none() {
        entry["task_toolsets"] = json!([toolset()]);
    }
    entry
}
