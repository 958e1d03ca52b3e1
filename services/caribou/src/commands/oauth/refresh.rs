//! `caribou oauth refresh`

use std::process::ExitCode;

use super::chains::{OneServer, demand_replica};
use crate::commands::gateway::Gateway;
use crate::commands::output;

pub(in crate::commands) async fn run(one: OneServer) -> anyhow::Result<ExitCode> {
    demand_replica(&one.target)?;
    let path = format!("{}/refresh", one.path());
    let answer = Gateway::once(&one.target, async |gateway| gateway.post(&path, String::new()).await).await?;
    if one.target.json {
        output::line(String::from_utf8_lossy(&answer))?;
    } else {
        output::line("a new access token is in force")?;
    }
    Ok(ExitCode::SUCCESS)
}
