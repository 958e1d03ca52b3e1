//! `caribou oauth list`

use std::process::ExitCode;

use clap::Args;

use super::chains::{Answer, listed};
use crate::commands::arguments::Target;
use crate::commands::output;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    target: Target,
}

pub(in crate::commands) async fn run(Arguments { target }: Arguments) -> anyhow::Result<ExitCode> {
    let answer = listed(&target).await?;
    if target.json {
        output::line(answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Answer { chains } = serde_json::from_str(&answer)?;
    let rows = chains.into_iter().map(|chain| {
        let (expires, changed) = (chain.expires(), chain.changed());
        let error = chain.last_error.unwrap_or_else(|| "-".to_owned());
        [chain.server, chain.state, chain.generation.to_string(), expires, changed, error]
    });
    let headings = ["Server", "State", "Generation", "Access token ends", "Changed", "Last error"];
    output::table(headings, &rows.collect::<Vec<_>>())?;
    Ok(ExitCode::SUCCESS)
}
