//! What this replica can do beside calling tools.

pub(crate) mod read;
