//! The public verbs, one a file.

pub mod call_tool;
pub mod list_tools;
pub mod status;
