//! The store on PostgreSQL and on SQLite.
//!
//! Each method is written once and expanded for both databases. SQLite has one connection that writes, so writers
//! queue in this process instead of failing as busy.

mod api_keys;
mod audit;
mod connections;
mod errors;
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
mod wakeups;

pub use pools::SqlStore;
pub use schema::SchemaError;
