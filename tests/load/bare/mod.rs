//! A bare call between two processes: one unary request of 1 KiB, answered with as much, by the library that replicas
//! talk by, and nothing else.
//!
//! What the limit of a hop was set beside (durability.md §9). What a hop costs more than this is ours; the rest is the
//! machine's and the library's. Only an optimised build says something.

mod both;
mod callers;
mod server;

pub(crate) use both::Bare;
pub(crate) use callers::call;
pub(crate) use server::serve;
