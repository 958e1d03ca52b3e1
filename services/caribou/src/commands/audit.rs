//! `caribou audit`: who did what, the newest first. The record is kept by a replica that serves, so one is named.

use std::process::ExitCode;

use anyhow::bail;
use caribou_core::instant::rfc3339_seconds;
use clap::Args;
use serde::Deserialize;
use url::form_urlencoded::Serializer;

use super::arguments::Target;
use super::gateway::Gateway;
use super::output;
use super::usage::Usage;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// Only what was done for this user
    #[arg(long)]
    user: Option<String>,
    /// Only what this principal did: the id of a key, the subject of a token
    #[arg(long, value_name = "PRINCIPAL")]
    by: Option<String>,
    /// Only with this MCP server
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// Only calls of the tool of this name
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only what ended so: ok, denied, timeout, ...
    #[arg(long)]
    outcome: Option<String>,
    /// Only rows before this one, for the next page
    #[arg(long, value_name = "ID")]
    before: Option<i64>,
    /// The most rows
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    #[command(flatten)]
    target: Target,
}

/// The answer of `GET /api/mcp/audit`.
#[derive(Deserialize)]
struct Answer {
    rows: Vec<Row>,
    next: Option<i64>,
}

#[derive(Deserialize)]
struct Row {
    at_ms: i64,
    principal: String,
    user_id: String,
    thread_id: String,
    action: String,
    server: String,
    tool: String,
    outcome: String,
    duration_ms: i64,
    request_id: String,
    door: String,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.target.server.is_none() {
        bail!(Usage("name the replica whose record is read with --server or CARIBOU_SERVER"));
    }
    let path = format!("/api/mcp/audit?{}", arguments.query());
    let answer = Gateway::once(&arguments.target, async |gateway| gateway.get(&path).await).await?;
    let answer = String::from_utf8_lossy(&answer);
    if arguments.target.json {
        output::line(answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Answer { rows, next } = serde_json::from_str(&answer)?;
    let headings = ["Time", "By", "Door", "User", "Thread", "Action", "Server", "Tool", "Outcome", "Took", "Request"];
    output::table(headings, &rows.into_iter().map(row).collect::<Vec<_>>())?;
    if let Some(next) = next {
        output::note(format_args!("there may be more: --before {next}"));
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn query(&self) -> String {
        let mut query = Serializer::new(String::new());
        let wanted = [
            ("principal", &self.by),
            ("user_id", &self.user),
            ("server", &self.from),
            ("tool", &self.tool),
            ("outcome", &self.outcome),
        ];
        for (name, value) in wanted.into_iter().filter_map(|(name, value)| value.as_ref().map(|value| (name, value))) {
            query.append_pair(name, value);
        }
        if let Some(before) = self.before {
            query.append_pair("before", &before.to_string());
        }
        query.append_pair("limit", &self.limit.to_string()).finish()
    }
}

fn row(row: Row) -> [String; 11] {
    [
        rfc3339_seconds(row.at_ms),
        row.principal,
        row.door,
        row.user_id,
        row.thread_id,
        row.action,
        row.server,
        row.tool,
        row.outcome,
        format!("{} ms", row.duration_ms),
        row.request_id,
    ]
}
