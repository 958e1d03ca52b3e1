//! `caribou sessions`: list and close live sessions. They live in replicas, so one is usually named.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::Deserialize;
use url::form_urlencoded::Serializer;

use super::arguments::Target;
use super::gateway::Gateway;
use super::output;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(in crate::commands) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List live sessions
    List {
        #[command(flatten)]
        target: Target,
    },
    /// Close the sessions of one user in one thread
    Close(Close),
}

#[derive(Debug, Args)]
struct Close {
    /// Whose sessions
    #[arg(long)]
    user: Option<String>,
    /// In which thread
    #[arg(long, default_value = "default")]
    thread: String,
    /// Only those with this MCP server
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    #[command(flatten)]
    target: Target,
}

/// The answer of `GET /api/mcp/sessions`, as far as a table shows it.
#[derive(Deserialize)]
struct Answer {
    sessions: Vec<Session>,
}

#[derive(Deserialize)]
struct Session {
    server: String,
    user_id: String,
    thread_id: String,
    epoch: u64,
    replica: String,
    pid: Option<u32>,
    in_flight: Option<usize>,
    age_ms: u64,
    idle_ms: Option<u64>,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        None => list(&arguments.target).await,
        Some(Command::List { target }) => list(&target).await,
        Some(Command::Close(close)) => self::close(&close).await,
    }
}

async fn list(target: &Target) -> anyhow::Result<ExitCode> {
    let answer = asked_of_a_replica(target, async |gateway| gateway.get("/api/mcp/sessions").await).await?;
    if target.json {
        output::line(answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Answer { sessions } = serde_json::from_str(&answer)?;
    let headings = ["Server", "User", "Thread", "Epoch", "Replica", "Process", "Calls", "Age", "Idle"];
    output::table(headings, &sessions.into_iter().map(row).collect::<Vec<_>>())?;
    Ok(ExitCode::SUCCESS)
}

async fn close(close: &Close) -> anyhow::Result<ExitCode> {
    let mut query = Serializer::new(String::new());
    let wanted = [("user_id", &close.user), ("server", &close.from)];
    for (name, value) in wanted.into_iter().filter_map(|(name, value)| value.as_ref().map(|value| (name, value))) {
        query.append_pair(name, value);
    }
    let thread: String = url::form_urlencoded::byte_serialize(close.thread.as_bytes()).collect();
    let path = format!("/api/threads/{thread}/mcp-sessions?{}", query.finish());
    let answer = asked_of_a_replica(&close.target, async |gateway| gateway.delete(&path).await).await?;
    if close.target.json {
        output::line(answer)?;
    } else {
        let closed = &serde_json::from_str::<serde_json::Value>(&answer)?["closed"];
        output::line(format_args!("closed {closed}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn asked_of_a_replica(
    target: &Target,
    ask: impl AsyncFnOnce(&Gateway) -> anyhow::Result<axum::body::Bytes>,
) -> anyhow::Result<String> {
    if target.server.is_none() {
        output::note("no replica is named (--server or CARIBOU_SERVER): a new process has no sessions");
    }
    let answer = Gateway::once(target, ask).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn row(session: Session) -> [String; 9] {
    let unknown = || "-".to_owned();
    [
        session.server,
        session.user_id,
        session.thread_id,
        session.epoch.to_string(),
        session.replica,
        session.pid.map_or_else(unknown, |pid| pid.to_string()),
        session.in_flight.map_or_else(unknown, |calls| calls.to_string()),
        format!("{} s", session.age_ms / 1_000),
        session.idle_ms.map_or_else(unknown, |idle| format!("{} s", idle / 1_000)),
    ]
}
