//! The command line of it, and the order of it all.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tokio::runtime::Builder;

use super::measured;

/// Measures what a call costs more when another replica holds its session.
#[derive(Args)]
pub(crate) struct Plan {
    /// The Caribou to measure; by default the one built beside this program.
    #[arg(long, value_name = "FILE")]
    caribou: Option<PathBuf>,
    /// Calls in flight, one line each.
    #[arg(long, value_delimiter = ',', default_value = "1,8", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) concurrency: Vec<u16>,
    /// Seconds of load for each figure. CPU time is counted in steps of 10 ms: give it several.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Sessions on record whose renewals are looked for; 0 skips.
    #[arg(long, default_value_t = 10_000)]
    pub(super) rows: u32,
    /// Resets that are made; 0 skips.
    #[arg(long, default_value_t = 100)]
    pub(super) resets: u32,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

/// Measures what the plan asks for, and prints it.
///
/// # Errors
/// Something could not be started, or a call failed.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<ExitCode> {
    let program = crate::run::caribou_program(plan.caribou.as_deref())?;
    let length = Duration::from_secs(plan.seconds);
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let report = runtime.block_on(measured::measure(program, plan, length))?;
    if plan.json {
        println!("{}", serde_json::to_string_pretty(&report.told()).context("writing the report")?);
    } else {
        print!("{report}");
    }
    Ok(if report.is_kept() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
