//! The store in memory: what the databases must mean, without a database. Made for tests and simulations, so it grows
//! with what is stored; gone with the process.

mod promotions;
mod replicas;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use caribou_core::ids::Scope;
use caribou_core::tool::Promotion;

/// The store in memory. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// In the order in which they began.
    replicas: Arc<Mutex<Vec<replicas::Life>>>,
    promotions: Arc<Mutex<BTreeMap<Scope, Promotion>>>,
}
