//! The store: PostgreSQL, SQLite and memory mean the same, and a database becomes the one this version needs.
//!
//! Each test has a store of its own. PostgreSQL is a private server with a schema made for the test.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

mod following;
mod opened;

mod api_keys;
mod audit;
mod cached_sessions;
mod client_sessions;
mod commands;
mod config_revisions;
mod connections;
mod generations;
mod notifications;
mod oauth_chains;
mod plans;
mod promotions;
mod refusals;
mod replicas;
mod schema;
mod sessions;
mod task_claims;
mod task_plans;
mod tasks;
mod thread_volumes;
