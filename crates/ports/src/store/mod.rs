//! What outlives a process: one trait for each thing that is stored.
//!
//! Three implementations mean the same: PostgreSQL, SQLite and memory. Methods are intentions, and each is one commit.
//! What a competitor can cause is an answer; an error means that the store could not be asked.

mod api_keys;
mod audit;
mod connections;
mod error;
mod promotions;
mod replicas;

pub use api_keys::{ApiKey, ApiKeys, StoredApiKey};
pub use audit::{Audit, AuditFilter, AuditRow, StoredAuditRow};
pub use connections::{Connections, StoredConnection};
pub use error::StoreError;
pub use promotions::Promotions;
pub use replicas::{Replica, ReplicaState, Replicas, StoredReplica};
