//! A server of thousands of tasks, within the test's own process: one toolset over streamable HTTP, without sessions.
//!
//! Speaks the modern era only, in which nothing is opened and nothing kept. What becomes of a task is planned by the
//! arguments of its submit, so that whoever is between only passes them on; what was asked is counted. Time decides
//! when a task has ended: there is no work and no timer.

mod ledger;
mod plan;
mod server;
mod wire;

pub use ledger::{SeenTask, TaskCounts};
pub use plan::{Ends, Plan};
pub use server::{Manners, TaskServer};
