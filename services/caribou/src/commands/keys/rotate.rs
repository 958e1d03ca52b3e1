//! `caribou keys rotate`: encrypts everything stored anew with the first key (contract 7.7).
//!
//! Each table is a step of its own: a page of rows is read, and what another key sealed is written again, each row only
//! while exactly what was read stands there. Safe while replicas run and to be run again after any error; when it ends
//! well, keys behind the first one can be taken away. What no key opens is counted and left as it is.

use std::process::ExitCode;

use anyhow::bail;
use caribou_core::bounds::RESEAL_PAGE;
use caribou_oauth::Cipher;
use caribou_ports::store::{Connections as _, OAuthChains as _, SealedTokens, StoreError, StoredChain, TokenColumn};
use caribou_ports::vault::{NotOpened, Vault};
use caribou_store::SqlStore;
use clap::Args;

use crate::commands::arguments::SettingsArguments;
use crate::commands::output;
use crate::{assemble, credentials};

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    settings: SettingsArguments,
}

/// What became of the rows of one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    resealed: u64,
    current: u64,
    unreadable: u64,
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let settings = assemble::accept(arguments.settings.load(None)?)?;
    // Before the database is touched.
    let Some(ring) = credentials::key_ring(&settings).await? else {
        bail!("CARIBOU_CREDENTIALS_KEY is not set; set it to the keys of your instances, the new one first");
    };
    let vault = Cipher::new(ring);
    let store = assemble::open_store(&settings).await?;
    let done = match connections(&store, &vault).await {
        Ok(connections) => chains(&store, &vault).await.map(|chains| (connections, chains)),
        Err(error) => Err(error),
    };
    store.close().await;
    let (connections, chains) = done?;
    for (table, Count { resealed, current, .. }) in [("mcp_connection", connections), ("mcp_oauth_chain", chains)] {
        output::line(format_args!("{table}: {resealed} encrypted anew, {current} were already"))?;
    }
    let unreadable = connections.unreadable + chains.unreadable;
    if unreadable > 0 {
        bail!("{unreadable} rows cannot be opened with any of the keys and were left as they are: add their key");
    }
    Ok(ExitCode::SUCCESS)
}

/// Personal connections.
async fn connections(store: &SqlStore, vault: &dyn Vault) -> Result<Count, StoreError> {
    let mut count = Count::default();
    let mut after = (String::new(), String::new());
    loop {
        let page = store.page(after, RESEAL_PAGE).await?;
        let Some(last) = page.last() else { return Ok(count) };
        after = (last.user.as_str().to_owned(), last.name.clone());
        for row in page {
            let place = row.place();
            match vault.open(&place, &row.sealed) {
                Ok(opened) if opened.is_current => count.current += 1,
                Ok(opened) => {
                    // One that was written meanwhile was encrypted with the first key of whoever wrote it.
                    let sealed = vault.seal(&place, &opened.secret);
                    count.resealed += u64::from(store.reseal(row, sealed).await?);
                }
                Err(_) => count.unreadable += 1,
            }
        }
        output::note(format_args!("mcp_connection: {} rows so far", count.resealed + count.current + count.unreadable));
    }
}

/// Chains of refresh tokens: as many as there are connections that have one.
async fn chains(store: &SqlStore, vault: &dyn Vault) -> Result<Count, StoreError> {
    let mut count = Count::default();
    for row in store.list_chains().await? {
        match reopened(&row, vault) {
            Ok(None) => count.current += 1,
            // A token that came meanwhile was encrypted with the first key of whoever asked for it.
            Ok(Some(tokens)) => count.resealed += u64::from(store.reseal_chain(row, tokens).await?),
            Err(_) => count.unreadable += 1,
        }
    }
    Ok(count)
}

/// Both tokens under the first key; `None` = they are already.
fn reopened(row: &StoredChain, vault: &dyn Vault) -> Result<Option<SealedTokens>, NotOpened> {
    let mut is_current = true;
    let mut anew = |column, sealed: &Option<Vec<u8>>| -> Result<Option<Vec<u8>>, NotOpened> {
        let Some(sealed) = sealed else { return Ok(None) };
        let place = row.place(column, row.generation);
        let opened = vault.open(&place, sealed)?;
        is_current &= opened.is_current;
        Ok(Some(vault.seal(&place, &opened.secret)))
    };
    let refresh = anew(TokenColumn::Refresh, &row.tokens.refresh)?;
    let access = anew(TokenColumn::Access, &row.tokens.access)?;
    Ok((!is_current).then_some(SealedTokens { refresh, access }))
}
