//! The public verbs, one a file.

pub(crate) mod call_tool;
pub(crate) mod close_sessions;
pub(crate) mod list_tools;
pub(crate) mod status;
