//! `caribou config remove`: removes one server.

use std::process::ExitCode;

use clap::Args;
use url::form_urlencoded::byte_serialize;

use super::stored::change;
use crate::commands::arguments::Target;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// Which server
    name: String,
    #[command(flatten)]
    target: Target,
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { name, target } = arguments;
    // In a path a blank is %20; `+` would be itself.
    let encoded = byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20");
    let path = format!("/api/mcp/config/servers/{encoded}");
    change(&target, async |gateway| gateway.delete(&path).await, &format!("{name}: removed")).await?;
    Ok(ExitCode::SUCCESS)
}
