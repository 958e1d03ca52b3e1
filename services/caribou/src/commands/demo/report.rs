//! The last act of the demo: a task in the background, from its submit to its result.

use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::commands::gateway::{self, Gateway};
use crate::commands::output;
use crate::commands::tasks::{Task, is_end};
use crate::commands::tools::events::{self, Event};

/// Who asks for the report, and in which thread.
pub(super) const USER: &str = "ann";
pub(super) const THREAD: &str = "office";

/// What is chosen when the report asks for its format.
const CHOSEN: &str = "table";

/// Far longer than the report takes, which is a few seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// The answer of a call that submits.
#[derive(Deserialize)]
struct Submitted {
    result: SubmitResult,
}

#[derive(Deserialize)]
struct SubmitResult {
    #[serde(rename = "structuredContent")]
    told: Told,
}

/// What is told of the task.
#[derive(Deserialize)]
struct Told {
    task_id: String,
    status: String,
    #[serde(default)]
    input_required: Value,
}

/// Submits a report, follows it, answers its question and shows its result; the task as it ended.
pub(super) async fn show(gateway: &Gateway, submit: &str, json: bool) -> anyhow::Result<Box<RawValue>> {
    let step = |what: &str, came: &str| if json { Ok(()) } else { output::line(line(what, came)) };
    if !json {
        output::line("  4  A report in the background, followed to its end:")?;
    }
    let body = json!({
        "name": submit, "arguments": { "topic": "reindeer" }, "user_id": USER, "thread_id": THREAD,
    });
    let answer = gateway.post("/api/mcp/tools/call", body.to_string()).await?;
    let Submitted { result } = serde_json::from_slice(&answer).context("the report was not taken as a task")?;
    let task_id = result.told.task_id;
    step("submit", &task_id)?;
    let path = |rest: &str| format!("/api/threads/{THREAD}/mcp-tasks/{task_id}{rest}?user_id={USER}");
    let mut seen = 0;
    let asked = follow(gateway, &path("/events"), &mut seen, json).await?;
    if is_end(&asked.status) {
        bail!("the report ended without a question");
    }
    step("question", asked.input_required["prompt"].as_str().unwrap_or_default())?;
    let body = json!({ "input_id": "format", "answers": { "format": CHOSEN } });
    gateway.post(&path("/input"), body.to_string()).await?;
    step("answer", CHOSEN)?;
    while !is_end(&follow(gateway, &path("/events"), &mut seen, json).await?.status) {}
    let answer = gateway.get(&path("")).await?;
    let task: Task = serde_json::from_slice(&answer)?;
    step("result", &format!("{}\n", task.end()))?;
    Ok(serde_json::from_slice(&answer)?)
}

fn line(what: &str, came: &str) -> String {
    format!("     {what:<25}→ {came}")
}

/// Shows what happens after the first `seen` events until the task asks or has ended.
async fn follow(gateway: &Gateway, path: &str, seen: &mut usize, json: bool) -> anyhow::Result<Told> {
    let stream = gateway.get_streaming(&format!("{path}&after={seen}")).await?;
    let next = events::read(stream, |event| {
        *seen += 1;
        take(&event, json).transpose()
    });
    tokio::time::timeout(PATIENCE, next).await.context("the report does not go on")??
}

/// Shows one event; what it tells if somebody has to do something about it.
fn take(event: &Event, json: bool) -> anyhow::Result<Option<Told>> {
    if event.name == "error" {
        return Err(gateway::refusal(&event.data));
    }
    let told: Told = serde_json::from_str(&event.data)?;
    if !json {
        output::line(line("poll", &told.status))?;
    }
    Ok((is_end(&told.status) || told.input_required.is_object()).then_some(told))
}
