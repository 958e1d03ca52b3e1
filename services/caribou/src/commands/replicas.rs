//! `caribou replicas`: which replicas share the work of one that runs, and how they are.

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

/// The answer of `GET /api/replicas`, as far as a table shows it.
#[derive(Deserialize)]
struct Answer {
    replicas: Vec<Replica>,
}

#[derive(Deserialize)]
struct Replica {
    boot: String,
    host: String,
    version: String,
    address: Option<String>,
    is_this: bool,
    is_alive: bool,
    is_draining: bool,
    load: f32,
    age_ms: u64,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.target.server.is_none() {
        output::note("no replica is named (--server or CARIBOU_SERVER): a new process is one of them for a moment");
    }
    let answer = Gateway::once(&arguments.target, async |gateway| gateway.get("/api/replicas").await).await?;
    if arguments.target.json {
        output::line(String::from_utf8_lossy(&answer))?;
        return Ok(ExitCode::SUCCESS);
    }
    let Answer { replicas } = serde_json::from_slice(&answer)?;
    let headings = ["Replica", "Host", "Address", "State", "Load", "Version", "Age"];
    output::table(headings, &replicas.into_iter().map(row).collect::<Vec<_>>())?;
    Ok(ExitCode::SUCCESS)
}

fn row(replica: Replica) -> [String; 7] {
    let state = state(&replica);
    [
        format!("{}{}", replica.boot, if replica.is_this { " (this one)" } else { "" }),
        replica.host,
        replica.address.unwrap_or_else(|| "-".to_owned()),
        state.to_owned(),
        format!("{:.0} %", replica.load * 100.0),
        replica.version,
        output::age(Duration::from_millis(replica.age_ms)),
    ]
}

fn state(replica: &Replica) -> &'static str {
    match (replica.is_alive, replica.is_draining) {
        (true, false) => "up",
        (true, true) => "draining",
        (false, _) => "silent",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_which_one_answers_and_how_each_is() {
        let shown = |is_this: bool, is_alive: bool, is_draining: bool| {
            let replica = serde_json::json!({"boot": "b", "host": "h", "version": "1", "address": null,
                "is_this": is_this, "is_alive": is_alive, "is_draining": is_draining, "load": 0.256, "age_ms": 61_000});
            row(serde_json::from_value(replica).unwrap())
        };
        assert_eq!(shown(true, true, false), ["b (this one)", "h", "-", "up", "26 %", "1", "1 min"]);
        assert_eq!(shown(false, true, true)[3], "draining");
        assert_eq!(shown(false, false, false)[3], "silent");
    }
}
