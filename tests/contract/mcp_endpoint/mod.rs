//! Caribou as one MCP server: what clients of either era see at `/mcp` and `/mcp/{server}`.

mod client;
mod identity;
mod legacy;
mod modern;
mod replicas;
