//! `caribou demo`: Caribou with an MCP server of its own, so that a newcomer sees it work with nothing installed.
//!
//! Owns the demo server, which is an ordinary MCP server over stdio, and the configuration that names it.

mod configuration;
mod reports;
mod server;

pub(crate) use configuration::{SERVER_NAME, SERVER_WORD, SUBMIT_TOOL, configuration};
pub(crate) use server::run as run_server;
