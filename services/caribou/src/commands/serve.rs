//! `caribou serve`: one replica, until a signal ends it. Stdout tells the address in its first line and nothing else.

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Args;

use super::arguments::SettingsArguments;
use super::output;
use crate::assemble::{self, Replica};
use crate::lifecycle::{self, Signals};
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
    let telemetry = Telemetry::start(&settings.log)?;
    let listener = lifecycle::listen(settings.listen).await?;
    let address = listener.local_addr()?;
    let servers = assemble::follow_servers(&settings).await?;
    let store = assemble::open_store(&settings).await?;
    let replica = Replica::start(&settings, servers, Some(store)).await?;
    let router = replica.router(&settings, telemetry.metrics.clone());
    // Whoever started this waits for the line: a replica that nobody can find must not run on.
    output::line(format_args!("LISTENING http://{address}"))
        .map_err(|_| anyhow::anyhow!("nobody reads the address on stdout"))?;
    tracing::info!(%address, replica = %replica.runtime.boot(), version = env!("CARGO_PKG_VERSION"), "serving");
    lifecycle::serve(listener, router, replica, telemetry, signals).await?;
    Ok(ExitCode::SUCCESS)
}
