//! REST against a real runtime over a server that lives in this process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod calls;
mod configuration;
mod identity;
mod problems;
mod replica;
mod routes;
mod serving;
mod tasks;
mod tool_search;
