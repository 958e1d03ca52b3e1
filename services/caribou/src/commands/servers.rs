//! `caribou servers`: which servers there are, how they are, why one is absent and since when.

use std::process::ExitCode;
use std::time::Duration;

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
    state_age_ms: u64,
    #[serde(default)]
    absent: Option<String>,
    era: Option<String>,
    tools: usize,
    sessions: usize,
    last_error: Option<String>,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let asked = async |gateway: &Gateway| output::wait("asking the servers", ask(gateway)).await;
    let answer = Gateway::once(&arguments.target, asked).await?;
    if arguments.target.json {
        output::line(String::from_utf8_lossy(&answer))?;
        return Ok(ExitCode::SUCCESS);
    }
    let Answer { servers } = serde_json::from_slice(&answer)?;
    let headings = ["Server", "Transport", "State", "For", "Era", "Tools", "Sessions", "Problem"];
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

fn row(server: Server) -> [String; 8] {
    let problem = problem(&server);
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        server.name,
        dash(server.transport),
        server.state,
        output::age(Duration::from_millis(server.state_age_ms)),
        dash(server.era),
        server.tools.to_string(),
        server.sessions.to_string(),
        problem,
    ]
}

/// Why its tools are absent, or what else it complains of.
fn problem(server: &Server) -> String {
    match (server.absent.as_deref(), server.last_error.as_deref()) {
        (Some("disabled"), _) => "switched off in the configuration".to_owned(),
        (Some("policy"), _) => format!("guardrails deny all of its {} tools", server.tools),
        (_, error) => error.and_then(|error| error.lines().next()).unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_absent_server_says_why() {
        let told = |absent: Option<&str>, error: Option<&str>| {
            let server = serde_json::json!({"name": "a", "transport": null, "state": "x", "state_age_ms": 0,
                "absent": absent, "era": null, "tools": 3, "sessions": 0, "last_error": error});
            problem(&serde_json::from_value(server).unwrap())
        };
        assert_eq!(told(Some("disabled"), None), "switched off in the configuration");
        assert_eq!(told(Some("policy"), None), "guardrails deny all of its 3 tools");
        assert_eq!(told(Some("dropped"), Some("no url\nmore")), "no url");
        assert_eq!(told(None, None), "");
    }
}
