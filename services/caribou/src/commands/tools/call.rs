//! `caribou tools call`: one tool, with its result on stdout. A result that says `isError` ends with 1.

use std::process::ExitCode;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::arguments_json;
use super::events::{self, Event};
use super::result::ToolResult;
use crate::commands::arguments::Target;
use crate::commands::gateway::{self, Gateway};
use crate::commands::output;

const PATH: &str = "/api/mcp/tools/call";

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// The tool, as `tools list` shows it
    name: String,
    /// One argument; the value is JSON if it is JSON, else text
    #[arg(long = "arg", value_name = "KEY=VALUE", conflicts_with = "args_json")]
    args: Vec<String>,
    /// All arguments as one JSON object
    #[arg(long, value_name = "JSON")]
    args_json: Option<String>,
    /// For which user
    #[arg(long)]
    user: Option<String>,
    /// In which thread
    #[arg(long)]
    thread: Option<String>,
    /// Call it as a background task, if the tool leaves the choice
    #[arg(long)]
    task: bool,
    /// Give up after this many seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// Show the tool's progress on stderr
    #[arg(long)]
    progress: bool,
    #[command(flatten)]
    target: Target,
}

#[derive(Serialize)]
struct Call<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    task: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<f64>,
}

/// The answer, as far as this command looks into it.
#[derive(Deserialize)]
pub(in crate::commands) struct Called {
    /// The tool's result.
    pub(in crate::commands) result: ToolResult,
    session: Option<Session>,
}

#[derive(Deserialize)]
struct Session {
    restarted: bool,
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let call = Call {
        name: &arguments.name,
        arguments: arguments_json::arguments(&arguments.args, arguments.args_json.as_deref())?,
        user_id: arguments.user.as_deref(),
        thread_id: arguments.thread.as_deref(),
        task: arguments.task,
        timeout: arguments.timeout,
    };
    let body = serde_json::to_string(&call)?;
    let answer = Gateway::once(&arguments.target, async |gateway| {
        output::wait("waiting for the tool", ask(gateway, body, arguments.progress)).await
    })
    .await?;
    let called: Called = serde_json::from_str(&answer)?;
    output::line(if arguments.target.json { answer } else { called.result.text() })?;
    if called.session.is_some_and(|session| session.restarted) {
        output::note("note: the session was started anew since this thread's last call; its earlier state is gone");
    }
    Ok(if called.result.is_error { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn ask(gateway: &Gateway, body: String, progress: bool) -> anyhow::Result<String> {
    if !progress {
        return Ok(String::from_utf8_lossy(&gateway.post(PATH, body).await?).into_owned());
    }
    let stream = gateway.post_streaming(PATH, body).await?;
    events::read(stream, |event| match event.name.as_str() {
        "result" => Some(Ok(event.data)),
        "error" => Some(Err(gateway::refusal(&event.data))),
        _ => {
            output::note(report(&event));
            None
        }
    })
    .await?
}

/// One report of a running call: `2/5 step 2 of 5`, or the data of a log message.
fn report(event: &Event) -> String {
    let Ok(params) = serde_json::from_str::<Value>(&event.data) else { return String::new() };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let number = |value: &Value| value.as_f64().map_or_else(|| value.to_string(), |number| number.to_string());
    let words = match (&params["progress"], &params["total"], &params["message"]) {
        (Value::Null, ..) => text(&params["data"]),
        (done, Value::Null, Value::Null) => number(done),
        (done, Value::Null, message) => format!("{} {}", number(done), text(message)),
        (done, total, Value::Null) => format!("{}/{}", number(done), number(total)),
        (done, total, message) => format!("{}/{} {}", number(done), number(total), text(message)),
    };
    output::printable(&words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(data: &str) -> String {
        report(&Event { name: "progress".to_owned(), data: data.to_owned() })
    }

    #[test]
    fn progress_is_one_line_whatever_the_server_tells() {
        assert_eq!(shown(r#"{"progress":2.0,"total":5,"message":"step\n2"}"#), "2/5 step 2");
        assert_eq!(shown(r#"{"progress":0.5}"#), "0.5");
        assert_eq!(shown(r#"{"level":"info","data":"hello"}"#), "hello");
        assert_eq!(shown(r#"{"level":"info","data":{"a":1}}"#), r#"{"a":1}"#);
    }
}
