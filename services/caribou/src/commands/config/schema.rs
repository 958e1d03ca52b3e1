//! `caribou config schema`: the JSON Schema of `config.yaml`, on stdout.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;

use crate::settings;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// The schema is JSON with and without this
    #[arg(long)]
    json: bool,
}

pub(in crate::commands) fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    std::io::stdout().lock().write_all(settings::schema_text().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
