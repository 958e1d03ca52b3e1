//! What a system prompt says of the tools.

pub(crate) mod read;
