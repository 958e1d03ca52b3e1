//! `caribou keys revoke`: a key is refused from now on; a replica that knew it refuses it five seconds later at most.

use std::process::ExitCode;

use anyhow::bail;
use caribou_ports::store::ApiKeys as _;
use clap::Args;
use serde_json::json;

use super::record::record;
use crate::assemble;
use crate::commands::arguments::SettingsArguments;
use crate::commands::output;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// The key, as `keys list` names it
    id: String,
    #[command(flatten)]
    settings: SettingsArguments,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let settings = assemble::accept(arguments.settings.load(None)?)?;
    let store = assemble::open_store(&settings).await?;
    let revoked = store.revoke(arguments.id.clone()).await;
    if revoked == Ok(true) {
        record(&settings, &store, "revoke_key", "", &arguments.id).await;
    }
    store.close().await;
    if !revoked? {
        // Not repeated: whoever takes the key for its id would find it in a log.
        bail!("there is no valid key of this id; `caribou keys list` shows all");
    }
    if arguments.json {
        output::line(json!({ "revoked": arguments.id }))?;
    } else {
        output::line(format_args!("revoked {}", arguments.id))?;
    }
    Ok(ExitCode::SUCCESS)
}
