//! `caribou config reset`: closes every session of a replica and lets it ask all servers anew.

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

/// The answer, as far as people are shown it.
#[derive(Deserialize)]
struct Answer {
    message: String,
    reach: String,
    unconfirmed: Vec<String>,
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let target = &arguments.target;
    let answer = Gateway::once(target, async |gateway| {
        output::wait("closing the sessions", gateway.post("/api/mcp/cache/reset", String::new())).await
    })
    .await?;
    if target.json {
        output::line(String::from_utf8_lossy(&answer))?;
        return Ok(ExitCode::SUCCESS);
    }
    let Answer { message, reach, unconfirmed } = serde_json::from_slice(&answer)?;
    output::line(message)?;
    let heard = match reach.as_str() {
        "process" => "only that replica heard of it",
        "directory" => "every replica that follows the same file hears of it before its next look-up",
        _ if unconfirmed.is_empty() => "every replica of the cluster has done it",
        _ => "every replica of the cluster does it within a second or two of reaching the database; not done yet by:",
    };
    output::note(heard);
    for replica in &unconfirmed {
        output::note(replica);
    }
    Ok(ExitCode::SUCCESS)
}
