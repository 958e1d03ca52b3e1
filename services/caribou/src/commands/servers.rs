//! `caribou servers`: which servers there are and how they are.

use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;

use super::arguments::Target;
use super::gateway::Gateway;
use super::output;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    target: Target,
}

/// The answer of `GET /api/mcp/servers`, as far as a table shows it.
#[derive(Deserialize)]
struct Answer {
    servers: Vec<Server>,
}

#[derive(Deserialize)]
struct Server {
    name: String,
    transport: Option<String>,
    state: String,
    era: Option<String>,
    tools: usize,
    sessions: usize,
    last_error: Option<String>,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let gateway = Gateway::open(&arguments.target).await?;
    let answer = output::wait("asking the servers", ask(&gateway)).await;
    gateway.close().await;
    let answer = answer?;
    if arguments.target.json {
        output::line(String::from_utf8_lossy(&answer))?;
        return Ok(ExitCode::SUCCESS);
    }
    let Answer { servers } = serde_json::from_slice(&answer)?;
    let headings = ["Server", "Transport", "State", "Era", "Tools", "Sessions", "Problem"];
    output::table(headings, &servers.into_iter().map(row).collect::<Vec<_>>())?;
    Ok(ExitCode::SUCCESS)
}

async fn ask(gateway: &Gateway) -> anyhow::Result<axum::body::Bytes> {
    if let Gateway::Local { .. } = gateway {
        // Nothing was asked yet in this process. Servers that fail are what this command is to show.
        let _ = gateway.get("/api/mcp/tools").await;
    }
    gateway.get("/api/mcp/servers").await
}

fn row(server: Server) -> [String; 7] {
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let problem = server.last_error.unwrap_or_default();
    [
        server.name,
        dash(server.transport),
        server.state,
        dash(server.era),
        server.tools.to_string(),
        server.sessions.to_string(),
        problem.lines().next().unwrap_or_default().to_owned(),
    ]
}
