//! What of it is measured, in which order.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use tokio::runtime::Builder;

use super::report::Report;
use super::{claims, followed};

/// Measures what following tasks costs.
#[derive(Args)]
pub(crate) struct Plan {
    /// The Caribou to measure; by default the one built beside this program.
    #[arg(long, value_name = "FILE")]
    caribou: Option<PathBuf>,
    /// What is measured.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Part::Postgres, Part::Sqlite, Part::Followed])]
    parts: Vec<Part>,
    /// Tasks in the database whose claims are measured.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..=20_000_000))]
    rows: u32,
    /// Tasks that are followed, each polled once a second.
    #[arg(long, default_value_t = 6_000, value_parser = clap::value_parser!(u64).range(100..=100_000))]
    tasks: u64,
    /// Seconds of load for each figure. CPU time is counted in steps of 10 ms: give it several.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

/// One part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Claims and settles of PostgreSQL.
    Postgres,
    /// The same of SQLite.
    Sqlite,
    /// A Caribou that follows tasks.
    Followed,
}

/// Measures what the plan asks for, and prints it.
///
/// # Errors
/// Something could not be started, or did not do what was measured.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<ExitCode> {
    let report = Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(run(plan))?;
    if plan.json {
        println!("{}", serde_json::to_string_pretty(&report.told()).context("writing the report")?);
    } else {
        print!("{report}");
    }
    Ok(ExitCode::SUCCESS)
}

async fn run(plan: &Plan) -> anyhow::Result<Report> {
    let length = Duration::from_secs(plan.seconds);
    let mut report = Report::default();
    if plan.parts.contains(&Part::Postgres) {
        report.postgres = Some(claims::of_postgres(plan.rows, length).await?);
    }
    if plan.parts.contains(&Part::Sqlite) {
        report.sqlite = Some(claims::of_sqlite(plan.rows, length).await?);
    }
    if plan.parts.contains(&Part::Followed) {
        let program = crate::run::caribou_program(plan.caribou.as_deref())?;
        report.followed = Some(followed::follow(program, plan.tasks, length).await?);
    }
    Ok(report)
}
