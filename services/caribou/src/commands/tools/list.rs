//! `caribou tools list`.

use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;

use crate::commands::arguments::Target;
use crate::commands::gateway::Gateway;
use crate::commands::output;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    target: Target,
}

/// The answer of `GET /api/mcp/tools`, as far as a table shows it.
#[derive(Deserialize)]
pub(in crate::commands) struct Listing {
    /// The tools.
    pub(in crate::commands) tools: Vec<Listed>,
    /// Servers still being discovered.
    #[serde(default)]
    pending: Vec<String>,
    /// Servers that failed.
    #[serde(default)]
    failed: Vec<Failed>,
}

/// One tool.
#[derive(Deserialize)]
pub(in crate::commands) struct Listed {
    /// The name to call it by.
    pub(in crate::commands) name: String,
    /// Its server.
    pub(in crate::commands) server: String,
    /// The server's own name for it.
    pub(in crate::commands) raw_name: String,
    tool: Tool,
}

#[derive(Deserialize)]
struct Tool {
    #[serde(default)]
    description: Option<String>,
}

#[derive(Deserialize)]
struct Failed {
    server: String,
    reason: String,
}

impl Listed {
    /// The first line of its description.
    pub(in crate::commands) fn summary(&self) -> &str {
        self.tool.description.as_deref().and_then(|text| text.trim().lines().next()).unwrap_or_default()
    }
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let answer = Gateway::once(&arguments.target, async |gateway| {
        output::wait("asking the servers for their tools", gateway.get("/api/mcp/tools")).await
    })
    .await?;
    let listing: Listing = serde_json::from_slice(&answer)?;
    if arguments.target.json {
        output::line(String::from_utf8_lossy(&answer))?;
    } else {
        show(&listing)?;
    }
    // Servers that failed are told beside the tools of the others, which is what was asked for.
    Ok(ExitCode::SUCCESS)
}

fn show(listing: &Listing) -> std::io::Result<()> {
    let row = |tool: &Listed| [tool.name.clone(), tool.server.clone(), tool.summary().to_owned()];
    output::table(["Tool", "Server", "Description"], &listing.tools.iter().map(row).collect::<Vec<_>>())?;
    for server in &listing.pending {
        output::note(format_args!("{server}: still being asked"));
    }
    for failed in &listing.failed {
        output::note(format_args!("{}: {}", failed.server, failed.reason));
    }
    Ok(())
}
