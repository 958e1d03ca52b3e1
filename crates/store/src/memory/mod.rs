//! The store in memory: what the databases must mean, without a database. Made for tests and simulations, so it grows
//! with what is stored, the audit log excepted; gone with the process.

mod api_keys;
mod audit;
mod connections;
mod notifications;
mod oauth_chains;
mod promotions;
mod replicas;
mod sessions;
mod tasks;
mod wakeups;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use caribou_core::ids::Scope;
use caribou_core::tool::Promotion;

use crate::hints::Hints;

/// The store in memory. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// In the order in which they began.
    replicas: Arc<Mutex<Vec<replicas::Life>>>,
    promotions: Arc<Mutex<BTreeMap<Scope, Promotion>>>,
    tasks: Arc<Mutex<tasks::Book>>,
    hints: Arc<Hints>,
    api_keys: Arc<Mutex<Vec<api_keys::Kept>>>,
    audit: Arc<Mutex<audit::Log>>,
    connections: Arc<Mutex<connections::Kept>>,
    oauth_chains: Arc<Mutex<oauth_chains::Kept>>,
    sessions: Arc<Mutex<sessions::Kept>>,
}
