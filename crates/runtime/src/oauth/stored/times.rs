//! What stored chains are kept by, and their times.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;
use caribou_ports::store::{OAuthChains, Wakeups};
use caribou_ports::vault::Vault;

/// Where chains of refresh tokens are kept, and what encrypts them.
#[derive(Clone)]
pub struct StoredChains {
    /// The store.
    pub store: Arc<dyn OAuthChains>,
    /// The cipher; the same keys in every replica.
    pub vault: Arc<dyn Vault>,
    /// What tells replicas that wait that a chain has changed; `None` = they look every quarter of a second.
    pub wakeups: Option<Arc<dyn Wakeups>>,
    /// The same in every replica.
    pub times: ChainTimes,
}

/// How long what takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainTimes {
    /// For how long nobody else may present a token.
    pub lease: Duration,
    /// How often that is prolonged while the request runs.
    pub renew: Duration,
    /// The last part of it, which is not acted in.
    pub margin: Duration,
    /// When a request is given up, and when everybody takes it for over.
    pub abandoned_after: Duration,
    /// For how long a presentation is called unknown before the token is presented again.
    pub last_word: Duration,
}

impl Default for ChainTimes {
    fn default() -> Self {
        Self {
            lease: bounds::CHAIN_LEASE,
            renew: bounds::CHAIN_RENEW,
            margin: bounds::CHAIN_MARGIN,
            abandoned_after: bounds::TOKEN_REQUEST,
            last_word: bounds::CHAIN_LAST_WORD,
        }
    }
}
