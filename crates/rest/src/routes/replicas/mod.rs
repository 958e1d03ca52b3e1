//! The replicas that share the work.

pub(crate) mod list;
