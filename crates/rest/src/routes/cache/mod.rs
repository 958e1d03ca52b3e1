//! What is remembered of the servers.

pub(crate) mod reset;
