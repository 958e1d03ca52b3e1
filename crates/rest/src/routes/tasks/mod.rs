//! Durable tasks (contract 2.3): those of a thread, one of them, its events, cancel and answer; for admins those of
//! everybody, and telling anew what was given up.
//!
//! Only what a caller may know is shown: never the remote's name of a task, what its driver remembers, or who holds
//! it; server, user and thread only to admins. Nothing is decided here, and nothing waits for a remote.

mod answer;
mod named;
mod stream;

pub(crate) mod cancel;
pub(crate) mod events;
pub(crate) mod input;
pub(crate) mod list;
pub(crate) mod list_all;
pub(crate) mod read;
pub(crate) mod redeliver;
