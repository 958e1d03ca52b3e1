//! Durable tasks in a database (durability.md 1.4, 1.5).
//!
//! Lock order of every transaction: the row of work, the task, its deliveries. Whatever is written about a claimed task
//! begins with the one statement that checks the claim and holds the row of work; no transaction spans anything but
//! statements. PostgreSQL and SQLite have two texts where rows are claimed and where many are settled at once.

mod answers;
mod cancel;
mod claim;
mod floors;
mod intent;
mod keep;
mod list;
mod pin;
mod port;
mod rows;
mod settle;
mod upkeep;

pub(super) use floors::Floors;
pub(super) use rows::{count, scope, strange};
pub(super) use settle::sinks;
