//! The poller over the store in memory, with a remote that does what a test says, in paused time.

mod cancels;
mod crashes;
mod follows;
mod pinned;
mod remote;
mod replica;
mod simulation;
