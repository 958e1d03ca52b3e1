//! What the configuration is followed by: the file or the database, and what other replicas tell of changes.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use caribou_ports::config_source::{ConfigSource, ConfigText, Variables};
use caribou_ports::reset_signal::ResetSignal;
use caribou_runtime::{Resets, StoredConfig};
use caribou_signals::RedisSignal;
use caribou_store::{Location, SqlStore};
use caribou_workspace::ConfigFile;

use crate::assemble;
use crate::settings::{ConfigOrigin, Settings};

/// The database, where the configuration cannot be followed without it: it holds the document, or other replicas that
/// change things.
///
/// # Errors
/// As [`assemble::open_store`]; or it is to hold the document, and there is none.
pub(crate) async fn store_of(settings: &Settings) -> anyhow::Result<Option<SqlStore>> {
    let is_kept_there = settings.config.source == ConfigOrigin::Database;
    if !settings.has_database() {
        anyhow::ensure!(
            !is_kept_there,
            "`config.source: database` needs a database: `database.backend` says there is none"
        );
        return Ok(None);
    }
    if is_kept_there || is_shared(settings) {
        return assemble::open_store(settings).await.map(Some);
    }
    Ok(None)
}

/// Whether several replicas may use the database.
fn is_shared(settings: &Settings) -> bool {
    matches!(settings.database_location(), Location::Postgres(_))
}

/// What replicas tell each other of resets and changes; `None` = nobody else uses what this one does.
///
/// # Errors
/// The address of the Redis is none.
pub(crate) fn resets(settings: &Settings, store: Option<&SqlStore>) -> anyhow::Result<Option<Resets>> {
    let is_kept_there = settings.config.source == ConfigOrigin::Database;
    let Some(store) = store.filter(|_| is_kept_there || is_shared(settings)) else { return Ok(None) };
    let signal = match &settings.redis.url {
        Some(url) => {
            let signal = RedisSignal::new(url.value().address(), &settings.redis.key_prefix).context("`redis.url`")?;
            Some(Arc::new(signal) as Arc<dyn ResetSignal>)
        }
        None => None,
    };
    Ok(Some(Resets { store: Arc::new(store.clone()), signal }))
}

/// The document that `store` keeps, as it stands; `None` = there is none. Nothing is made of a file.
///
/// # Errors
/// The store cannot be asked.
pub(crate) async fn kept_in(store: &SqlStore) -> anyhow::Result<Option<ConfigText>> {
    let folder = std::env::current_dir().context("the working directory is gone")?;
    let kept = StoredConfig::new(Arc::new(store.clone()), &folder, Arc::new(|name| std::env::var(name).ok()));
    Ok(kept.load().await?)
}

/// The document as it is kept now, and what it is followed and changed by.
pub(crate) struct Followed {
    /// The way to it.
    pub(crate) source: Arc<dyn ConfigSource>,
    /// What stands there; `None` = nothing yet.
    pub(crate) text: Option<ConfigText>,
    /// Where it stands, or will.
    pub(crate) file: std::path::PathBuf,
}

/// Follows `file`, or the document that `store` keeps: made of the file when there is none.
///
/// # Errors
/// What is kept cannot be read.
pub(crate) async fn follow(
    settings: &Settings,
    file: ConfigFile,
    (store, folder, variables): (Option<&SqlStore>, &Path, Variables),
) -> anyhow::Result<Followed> {
    if settings.config.source == ConfigOrigin::File {
        let text = file.load().await?;
        return Ok(Followed { file: file.place(), source: Arc::new(file), text });
    }
    let store = store.context("`config.source: database` needs the database that holds the document")?;
    let place = file.place();
    let kept = StoredConfig::new(Arc::new(store.clone()), place.parent().unwrap_or(folder), variables);
    let mut text = kept.load().await?;
    if text.is_none()
        && let Some(first) = file.load().await?
    {
        // Of two replicas that start at once, one is first; the other one takes what that one stored.
        if kept.import(first.text).await? {
            let file = place.display();
            tracing::info!(%file, "the configuration is in the database from now on, and this file is read no more");
        }
        text = kept.load().await?;
    }
    Ok(Followed { file: kept.place(), source: Arc::new(kept), text })
}
