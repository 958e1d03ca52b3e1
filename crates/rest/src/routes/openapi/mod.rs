//! The description of this API.

pub(crate) mod read;
