//! A replica over one server that lives in this process, and how tests talk to it.

mod fake;
mod talk;

pub(crate) use fake::{FakeServer, replica, replica_for};
pub(crate) use talk::{Answer, ask, call, start, start_with};
