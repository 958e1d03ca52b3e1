//! `caribou tasks show`: all that is known of one task.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value};

use super::named::{Named, demand_replica};
use crate::commands::gateway::Gateway;
use crate::commands::output;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    named: Named,
}

pub(in crate::commands) async fn run(Arguments { named }: Arguments) -> anyhow::Result<ExitCode> {
    demand_replica(&named.target)?;
    let answer = Gateway::once(&named.target, async |gateway| gateway.get(&named.path("")).await).await?;
    show(&answer, named.target.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints what a replica answered with about one task.
pub(super) fn show(answer: &[u8], json: bool) -> anyhow::Result<()> {
    if json {
        output::line(String::from_utf8_lossy(answer))?;
        return Ok(());
    }
    let members: Map<String, Value> = serde_json::from_slice(answer)?;
    let rows: Vec<_> = members.into_iter().filter_map(|(name, value)| Some([name, text(value)?])).collect();
    output::table(["Field", "Value"], &rows)?;
    Ok(())
}

/// A value in one line; nothing for one that says nothing.
fn text(value: Value) -> Option<String> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) => Some(text),
        value => Some(value.to_string()),
    }
}
