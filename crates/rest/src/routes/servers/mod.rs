//! The configured MCP servers.

pub(crate) mod list;
