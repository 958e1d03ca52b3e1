//! `caribou migrate`: gives the database the schema that this version needs, one printed step after the other.
//!
//! Safe to run at any time and by many at once. Replicas on PostgreSQL wait for it, because they must not change a
//! database that older ones still use; an embedded database needs it never.

use std::process::ExitCode;

use caribou_store::SqlStore;
use clap::Args;

use super::arguments::SettingsArguments;
use super::output;
use crate::assemble;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    settings: SettingsArguments,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let settings = assemble::accept(arguments.settings.load(None)?)?;
    let store = SqlStore::open(&settings.database_location()).await?;
    while let Some(step) = store.migrate_next().await? {
        output::line(format_args!("applied {}", step.name))?;
    }
    store.close().await;
    output::line(format_args!("the schema is version {}", SqlStore::schema_version()))?;
    Ok(ExitCode::SUCCESS)
}
