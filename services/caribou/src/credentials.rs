//! The keys that encrypt what is stored, and what keeps personal connections and token chains (contract 7.7).
//!
//! Owns where the keys come from: the environment, else a file that a single instance makes for itself. Several
//! instances never make one, since what one of them wrote the others could not read. An entry that is no key ends the
//! start before anything on disk is touched.

use std::sync::Arc;

use anyhow::bail;
use caribou_core::config::{Document, OAuthGrant};
use caribou_core::launch::Allowlist;
use caribou_oauth::{CREDENTIALS_KEY, Cipher, KeyRing, key_file};
use caribou_ports::store::Wakeups;
use caribou_runtime::{ChainTimes, Personal, StoredChains};
use caribou_store::{Location, SqlStore};

use crate::settings::Settings;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Refuses to serve with keys that cannot be used, or without any where several instances must share them.
///
/// # Errors
/// Which of both, and how to mend it.
pub(crate) fn demand(settings: &Settings, document: &Document) -> anyhow::Result<()> {
    let is_configured = KeyRing::from_variables(&variable)?.is_some();
    if is_configured || !settings.deployment.multi_instance {
        return Ok(());
    }
    let mut enabled = document.servers.iter().filter_map(|entry| entry.config.as_ref().ok()).filter(|one| one.enabled);
    let rotates = enabled.find(|server| {
        server.oauth.as_ref().is_some_and(|oauth| oauth.enabled && oauth.grant == OAuthGrant::RefreshToken)
    });
    if let Some(server) = rotates {
        bail!(
            "server `{}` has a refresh token, several instances share it (`deployment.multi_instance`), and \
             {CREDENTIALS_KEY} is not set: set it to the same value for every instance; `caribou keys generate` prints \
             one",
            server.name
        );
    }
    Ok(())
}

/// The keys; `None` = several instances share what is stored, and none is configured.
///
/// # Errors
/// They cannot be used, or the file of a single instance cannot be read or made.
pub(crate) async fn key_ring(settings: &Settings) -> anyhow::Result<Option<KeyRing>> {
    if let Some(ring) = KeyRing::from_variables(&variable)? {
        return Ok(Some(ring));
    }
    if settings.deployment.multi_instance {
        return Ok(None);
    }
    if matches!(settings.database_location(), Location::Postgres(_)) {
        tracing::warn!("{CREDENTIALS_KEY} is not set: this instance uses a key that no other one has");
    }
    Ok(Some(key_file(&settings.data_dir).await?))
}

/// What keeps chains of refresh tokens, for all replicas; `None` = each keeps its own in memory (contract 7.5).
///
/// # Errors
/// As [`key_ring`].
pub(crate) async fn oauth_chains(
    settings: &Settings,
    store: Option<&SqlStore>,
) -> anyhow::Result<Option<StoredChains>> {
    let Some(store) = store else { return Ok(None) };
    let Some(ring) = key_ring(settings).await? else {
        tracing::warn!("rotated refresh tokens are kept in memory only: {CREDENTIALS_KEY} is not set");
        return Ok(None);
    };
    let vault = Arc::new(Cipher::new(ring));
    let wakeups = Some(Arc::new(store.clone()) as Arc<dyn Wakeups>);
    Ok(Some(StoredChains { store: Arc::new(store.clone()), vault, wakeups, times: ChainTimes::default() }))
}

/// What keeps personal connections; `None` = nothing does.
///
/// # Errors
/// As [`key_ring`].
pub(crate) async fn personal(
    settings: &Settings,
    store: Option<&SqlStore>,
    allowlist: Option<&Allowlist>,
) -> anyhow::Result<Option<Personal>> {
    let Some(store) = store else { return Ok(None) };
    let Some(ring) = key_ring(settings).await? else {
        tracing::warn!("users cannot bring servers of their own: {CREDENTIALS_KEY} is not set");
        return Ok(None);
    };
    Ok(Some(Personal {
        connections: Arc::new(store.clone()),
        vault: Arc::new(Cipher::new(ring)),
        max_per_user: settings.personal.max_per_user,
        stdio: allowlist.filter(|_| settings.personal.allow_stdio).cloned(),
    }))
}
