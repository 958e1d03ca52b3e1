//! The audit log.

pub(crate) mod read;
