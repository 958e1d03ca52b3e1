//! The store's ports on PostgreSQL, on SQLite and in memory.
//!
//! Owns statements, migrations and the translation of database errors; decides nothing beyond what a statement must
//! check. The SQL is one text where both databases mean the same by it. Every request has a deadline and every pool a
//! bound (invariant B1). Nothing of the database's address is printable (invariant O3).

mod cached_sessions;
mod hints;
mod location;
mod memory;
mod migrations;
mod sql;

pub use cached_sessions::CachedClientSessions;
pub use location::{Location, NotALocation};
pub use memory::Memory;
pub use migrations::Migration;
pub use sql::{Inspected, SchemaError, SqlStore};
