//! `load tasks`: what following many tasks costs a database, a replica and whoever waits.
//!
//! ```text
//!   claims    claim 64, settle 64, again and again, past everything but the store: CPU time of the database
//!   followed  a Caribou, a PostgreSQL and a server of tasks: polls that arrive, and how late they do
//! ```
//!
//! [`plan`] is the command line and the order of it all, [`report`] the figures and their limits. Everything is started
//! privately and gone at the end. What cannot be started ends the run, with its reason.

mod claims;
mod filled;
mod followed;
mod plan;
mod report;

pub(crate) use plan::{Plan, measure};
