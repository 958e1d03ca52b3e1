//! Durable tasks as clients see and answer them (mcp.md §9, §14.5), out of the same rows as every other door.
//!
//! Owns the words of both eras, what a call that made a task is answered with, and waiting for the end of one. What a task
//! is to a client is decided by `caribou_core::task::client_view`; who may see which, by the runtime (invariant P1).

pub(crate) mod ended;
pub(crate) mod found;
pub(crate) mod made;
pub(crate) mod shown;
