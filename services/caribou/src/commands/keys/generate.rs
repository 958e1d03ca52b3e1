//! `caribou keys generate`: prints a new key for `CARIBOU_CREDENTIALS_KEY` (contract 7.7). Nothing is stored.

use std::process::ExitCode;

use caribou_oauth::Key;

use crate::commands::output;

pub(in crate::commands) fn run() -> anyhow::Result<ExitCode> {
    output::line(&*Key::generate()?.expose())?;
    Ok(ExitCode::SUCCESS)
}
