//! Live sessions of this replica.

pub(crate) mod list;
