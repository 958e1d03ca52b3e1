//! `caribou config history`: the states that the stored configuration had, or one of them, secrets masked.

use std::process::ExitCode;
use std::time::Duration;

use caribou_runtime::wall_clock_ms;
use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use crate::commands::arguments::Target;
use crate::commands::gateway::Gateway;
use crate::commands::output;

/// Where the history is read.
const PATH: &str = "/api/mcp/config/history";

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// Only this revision, with all its servers
    revision: Option<i64>,
    /// The most revisions
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    #[command(flatten)]
    target: Target,
}

/// A page of it.
#[derive(Deserialize)]
struct History {
    revisions: Vec<Revision>,
}

#[derive(Deserialize)]
struct Revision {
    revision: i64,
    author: String,
    at_ms: i64,
    bytes: i64,
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { revision, limit, target } = arguments;
    let path = match revision {
        Some(revision) => format!("{PATH}/{revision}"),
        None => format!("{PATH}?limit={limit}"),
    };
    let answer = Gateway::once(&target, async |gateway| gateway.get(&path).await).await?;
    if target.json {
        output::line(String::from_utf8_lossy(&answer))?;
    } else if revision.is_some() {
        let shown: Value = serde_json::from_slice(&answer)?;
        output::line(format_args!("{:#}", shown["mcp_servers"]))?;
    } else {
        let History { revisions } = serde_json::from_slice(&answer)?;
        let now = wall_clock_ms();
        output::table(
            ["Revision", "Author", "Age", "Bytes"],
            &revisions.iter().map(|revision| row(revision, now)).collect::<Vec<_>>(),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(revision: &Revision, now_ms: i64) -> [String; 4] {
    let age = Duration::from_millis(u64::try_from(now_ms - revision.at_ms).unwrap_or(0));
    [revision.revision.to_string(), revision.author.clone(), output::age(age), revision.bytes.to_string()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_who_wrote_it_and_when() {
        let revision = Revision { revision: 7, author: "ops".to_owned(), at_ms: 60_000, bytes: 12 };
        assert_eq!(row(&revision, 180_000), ["7", "ops", &output::age(Duration::from_secs(120)), "12"]);
    }
}
