//! Who the caller is.

pub(crate) mod read;
