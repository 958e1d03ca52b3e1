//! `caribou tasks watch`: tells what happens to one task until it has ended. Ends with 1 when it did not end well.

use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use super::named::{Named, Task, demand_replica, is_end};
use crate::commands::gateway::{self, Gateway};
use crate::commands::output;
use crate::commands::tools::events::{self, Event};

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    named: Named,
}

/// What an event tells, as far as people are shown it.
#[derive(Deserialize)]
struct Told {
    status: String,
    error: Option<String>,
    #[serde(default)]
    input_required: Value,
    last_poll_error: Option<String>,
}

pub(in crate::commands) async fn run(Arguments { named }: Arguments) -> anyhow::Result<ExitCode> {
    demand_replica(&named.target)?;
    let answer = Gateway::once(&named.target, async |gateway| {
        let stream = gateway.get_streaming(&named.path("/events")).await?;
        events::read(stream, |event| take(&event)).await??;
        gateway.get(&named.path("")).await
    })
    .await?;
    let task: Task = serde_json::from_slice(&answer)?;
    output::line(if named.target.json { String::from_utf8_lossy(&answer).into_owned() } else { task.end() })?;
    Ok(if task.status == "completed" { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Shows one event; something when it was the last.
fn take(event: &Event) -> Option<anyhow::Result<()>> {
    if event.name == "error" {
        return Some(Err(gateway::refusal(&event.data)));
    }
    match serde_json::from_str::<Told>(&event.data) {
        Ok(told) => {
            output::note(line(&told));
            is_end(&told.status).then_some(Ok(()))
        }
        Err(error) => Some(Err(error.into())),
    }
}

/// One event in one line.
fn line(told: &Told) -> String {
    let more = match told {
        Told { error: Some(error), .. } => error.clone(),
        Told { last_poll_error: Some(error), .. } => format!("hard to reach: {error}"),
        Told { input_required: Value::Null, .. } => return told.status.clone(),
        Told { input_required, .. } => input_required.to_string(),
    };
    output::printable(&format!("{}: {more}", told.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn the_last_event_is_that_of_the_end_or_of_a_failure() {
        assert!(take(&event("task", r#"{"status":"working","error":null}"#)).is_none());
        assert!(take(&event("task", r#"{"status":"cancelled"}"#)).unwrap().is_ok());
        let failed = take(&event("error", r#"{"detail":"gone","code":"unavailable"}"#)).unwrap();
        assert_eq!(failed.unwrap_err().to_string(), "gone (unavailable)");
    }

    #[test]
    fn an_event_is_one_line() {
        let shown = |data: &str| line(&serde_json::from_str(data).unwrap());
        assert_eq!(shown(r#"{"status":"submitted"}"#), "submitted");
        assert_eq!(shown(r#"{"status":"input_required","input_required":{"q":1}}"#), "input_required: {\"q\":1}");
        assert_eq!(
            shown(r#"{"status":"working","last_poll_error":"no\nanswer"}"#),
            "working: hard to reach: no answer"
        );
    }
}
