//! `caribou serve`: one replica, until a signal ends it. Stdout tells the address of REST in its first line, that of
//! gRPC and that for other replicas in further ones, and nothing else. A person at a terminal is told more on stderr.

use std::io::{IsTerminal as _, stderr};
use std::net::SocketAddr;
use std::process::ExitCode;

use caribou_core::config::Document;
use clap::Args;

use super::arguments::SettingsArguments;
use super::output;
use super::start_screen::{self, Serving};
use crate::assemble::{self, Replica};
use crate::credentials;
use crate::doors::Doors;
use crate::followed;
use crate::lifecycle::{self, Signals};
use crate::start_gate;
use crate::tasks;
use crate::telemetry::Telemetry;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// Address and port to serve on; port 0 takes a free one [env: CARIBOU_LISTEN]
    #[arg(long, value_name = "HOST:PORT")]
    pub(in crate::commands) listen: Option<SocketAddr>,
    #[command(flatten)]
    pub(in crate::commands) settings: SettingsArguments,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let signals = Signals::take()?;
    let settings = assemble::accept(arguments.settings.load(arguments.listen)?)?;
    let telemetry = Telemetry::start(&settings)?;
    let doors = Doors::open(&settings).await?;
    let addresses = doors.addresses()?;
    start_gate::pass(&settings).await?;
    let early = followed::store_of(&settings).await?;
    let servers = assemble::follow_servers(&settings, early.as_ref()).await?;
    credentials::demand(&settings, &servers.document)?;
    tasks::demand(&settings, &servers.document)?;
    let store = match early {
        None if settings.has_database() => Some(assemble::open_store(&settings).await?),
        early => early,
    };
    let (document, (left_out, served)) = (servers.file.clone(), counted(&servers.document));
    let replica = Box::pin(Replica::start(&settings, servers, store, doors.peers(), telemetry.boot.clone())).await?;
    let router = replica.router(&settings, telemetry.metrics.clone());
    // Whoever started this waits for the line: a replica that nobody can find must not run on.
    for address in std::iter::once(&addresses.rest).chain(&addresses.grpc).chain(&addresses.peers) {
        output::line(format_args!("LISTENING {address}"))
            .map_err(|_| anyhow::anyhow!("nobody reads the address on stdout"))?;
    }
    if stderr().is_terminal() {
        let serving =
            Serving { settings: &settings, addresses: &addresses, document: &document, servers: served, left_out };
        output::note(start_screen::text(&serving));
    }
    tracing::info!(address = addresses.rest, grpc = addresses.grpc, peers = addresses.peers, replica = %replica.runtime.boot(), version = env!("CARGO_PKG_VERSION"), "serving");
    Box::pin(lifecycle::serve(doors, router, replica, telemetry, signals)).await?;
    Ok(ExitCode::SUCCESS)
}

/// How many servers are left out, and how many are served.
fn counted(document: &Document) -> (usize, usize) {
    let left_out = document.servers.iter().filter(|entry| entry.config.is_err()).count();
    let served = document.servers.iter().filter(|entry| entry.config.as_ref().is_ok_and(|one| one.enabled)).count();
    (left_out, served)
}
