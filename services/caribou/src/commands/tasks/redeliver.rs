//! `caribou tasks redeliver`: tells anew what was given up. For admins.

use std::process::ExitCode;

use clap::Args;
use url::form_urlencoded::byte_serialize;

use super::named::demand_replica;
use crate::commands::arguments::Target;
use crate::commands::gateway::Gateway;
use crate::commands::output;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// The task, as `tasks list --all` shows it
    task: String,
    #[command(flatten)]
    target: Target,
}

pub(in crate::commands) async fn run(Arguments { task, target }: Arguments) -> anyhow::Result<ExitCode> {
    demand_replica(&target)?;
    let task: String = byte_serialize(task.as_bytes()).collect();
    let path = format!("/api/mcp-tasks/{task}/redeliver");
    let answer = Gateway::once(&target, async |gateway| gateway.post(&path, String::new()).await).await?;
    let answer = String::from_utf8_lossy(&answer);
    if target.json {
        output::line(answer)?;
    } else {
        output::line("it is told anew")?;
    }
    Ok(ExitCode::SUCCESS)
}
