//! The store on PostgreSQL and on SQLite.
//!
//! Each method is written once and expanded for both databases. SQLite has one connection that writes, so writers
//! queue in this process instead of failing as busy.

mod api_keys;
mod audit;
mod client_sessions;
mod clock;
mod config_revisions;
mod connections;
mod errors;
mod generations;
mod inspect;
mod notifications;
mod oauth_chains;
mod pools;
mod postgres;
mod promotions;
mod replicas;
mod row;
mod schema;
mod sessions;
mod sqlite;
mod statement;
mod tasks;
mod thread_volumes;
mod wakeups;

pub use inspect::Inspected;
pub use pools::SqlStore;
pub use schema::SchemaError;
