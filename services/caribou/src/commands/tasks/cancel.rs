//! `caribou tasks cancel`: asks for one task to be cancelled. Its server is told by the replica, soon.

use std::process::ExitCode;

use clap::Args;

use super::named::{Named, demand_replica};
use super::show::show;
use crate::commands::gateway::Gateway;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    named: Named,
}

pub(in crate::commands) async fn run(Arguments { named }: Arguments) -> anyhow::Result<ExitCode> {
    demand_replica(&named.target)?;
    let path = named.path("/cancel");
    let answer = Gateway::once(&named.target, async |gateway| gateway.post(&path, String::new()).await).await?;
    show(&answer, named.target.json)?;
    Ok(ExitCode::SUCCESS)
}
