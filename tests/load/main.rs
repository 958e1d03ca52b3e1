//! The load generator: what a call through Caribou costs, side by side with the same call made directly.
//!
//! Owns the command line. It starts everything it measures itself: echo servers (this binary under a hidden first
//! argument) and one Caribou for each way to be configured: for two servers, for the same with its file gone, without
//! and with what guards its calls, for many. `load tasks` and `load replicas` measure something else ([`tasks`],
//! [`replicas`]).
//! Numbers of one run may be compared with one another; numbers of two runs only as ratios, because the machine differs.
//!
//! Any failure before a measurement ends the run with its reason; a call that fails within one is counted, shown, and
//! makes the run end with an error. Keeps no invariant; a refusal by Caribou (B1) shows up as a failed call.

mod bare;
mod call;
mod echo;
mod http1;
mod pipe;
mod proc;
mod replicas;
mod report;
mod run;
mod sample;
mod sessions;
mod stand;
mod started;
mod tasks;
mod yardstick;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use caribou_core::era::Era;
use clap::{Args, Parser, Subcommand};

use crate::call::Path;

/// Measures what a call through Caribou costs, beside the same call made directly.
#[derive(Parser)]
#[command(name = "load", args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(flatten)]
    plan: Plan,
    #[command(subcommand)]
    other: Option<Other>,
}

/// What is measured.
#[derive(Args)]
struct Plan {
    /// The Caribou to measure; by default the one built beside this program.
    #[arg(long, value_name = "FILE")]
    caribou: Option<PathBuf>,
    /// Seconds of load for each line of the table. CPU time is counted in steps of 10 ms: give it several.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Calls in flight, one line each.
    #[arg(long, value_delimiter = ',', default_value = "1,8,64", value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: Vec<u16>,
    /// Ways to call.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Path::ALL)]
    paths: Vec<Path>,
    /// Idle sessions to open with the HTTP echo; 0 skips.
    #[arg(long, default_value_t = 200)]
    http_sessions: usize,
    /// Idle sessions to open with the stdio echo, each a child process; 0 skips.
    #[arg(long, default_value_t = 100)]
    stdio_sessions: usize,
    /// Idle sessions of MCP clients to open at Caribou's own endpoint; 0 skips.
    #[arg(long, default_value_t = 10_000)]
    client_sessions: usize,
    /// The echo servers speak revision 2026-07-28 instead of 2025-11-25.
    #[arg(long)]
    modern: bool,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

impl Plan {
    fn era(&self) -> Era {
        era(self.modern)
    }

    fn measures(&self, path: Path) -> bool {
        self.paths.contains(&path)
    }

    fn seconds(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

/// What else this program does: another measurement, and the echo servers, started by the generator and by the Caribou it
/// measures.
#[derive(Subcommand)]
enum Other {
    /// Measures what following tasks costs.
    Tasks(tasks::Plan),
    /// Measures what a call costs more when another replica holds its session.
    Replicas(replicas::Plan),
    /// A minimal streamable-HTTP MCP server.
    #[command(hide = true)]
    EchoHttp {
        #[arg(long)]
        modern: bool,
        /// How many tools it lists.
        #[arg(long, default_value_t = 1)]
        tools: u16,
    },
    /// The same over stdin and stdout.
    #[command(hide = true)]
    EchoStdio {
        #[arg(long)]
        modern: bool,
    },
    /// Sends back what comes.
    #[command(hide = true)]
    Bounce,
    /// Answers bare calls.
    #[command(hide = true)]
    BareServer,
    /// Makes them.
    #[command(hide = true)]
    BareCallers { address: SocketAddr, in_flight: u16 },
}

impl Other {
    /// Whether it is one process of a measurement.
    fn is_part(&self) -> bool {
        !matches!(self, Self::Tasks(_) | Self::Replicas(_))
    }
}

fn era(modern: bool) -> Era {
    if modern { Era::Modern } else { Era::Legacy }
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    if cfg!(debug_assertions) && !matches!(&arguments.other, Some(other) if other.is_part()) {
        eprintln!(
            "this program is not optimised, so its own servers take more of the machine: build it with --release"
        );
    }
    match arguments.other {
        Some(Other::Tasks(plan)) => tasks::measure(&plan),
        Some(Other::Replicas(plan)) => replicas::measure(&plan),
        Some(Other::EchoHttp { modern, tools }) => echo::serve_http(era(modern), tools).map(|()| ExitCode::SUCCESS),
        Some(Other::EchoStdio { modern }) => echo::serve_stdio(era(modern)).map(|()| ExitCode::SUCCESS),
        Some(Other::BareServer) => bare::serve().map(|()| ExitCode::SUCCESS),
        Some(Other::BareCallers { address, in_flight }) => bare::call(address, in_flight).map(|()| ExitCode::SUCCESS),
        Some(Other::Bounce) => yardstick::bounce().map(|()| ExitCode::SUCCESS),
        None => measure(&arguments.plan),
    }
}

fn measure(plan: &Plan) -> anyhow::Result<ExitCode> {
    let report = run::run(plan)?;
    if plan.json {
        println!("{}", serde_json::to_string_pretty(&report).context("writing the report")?);
    } else {
        print!("{report}");
    }
    Ok(if report.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
