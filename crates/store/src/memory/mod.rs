//! The store in memory: what the databases must mean, without a database. Made for tests and simulations, so it grows
//! with what is stored, the audit log excepted; gone with the process.

mod api_keys;
mod audit;
mod client_sessions;
mod config_revisions;
mod connections;
mod generations;
mod notifications;
mod oauth_chains;
mod promotions;
mod replicas;
mod sessions;
mod tasks;
mod thread_volumes;
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
    thread_volumes: Arc<Mutex<thread_volumes::Kept>>,
    generations: Arc<Mutex<generations::Kept>>,
    config_revisions: Arc<Mutex<config_revisions::Kept>>,
    client_sessions: Arc<Mutex<client_sessions::Kept>>,
}
