//! `caribou oauth forget`

use std::process::ExitCode;

use super::chains::{OneServer, demand_replica};
use crate::commands::gateway::Gateway;
use crate::commands::output;

pub(in crate::commands) async fn run(one: OneServer) -> anyhow::Result<ExitCode> {
    demand_replica(&one.target)?;
    let path = one.path();
    Gateway::once(&one.target, async |gateway| gateway.delete(&path).await).await?;
    output::line("it is forgotten: the next token is asked for with the configured refresh token")?;
    Ok(ExitCode::SUCCESS)
}
