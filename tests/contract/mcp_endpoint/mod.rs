//! Caribou as one MCP server: what clients of either era see at `/mcp` and `/mcp/{server}`.

mod client;
mod identity;
mod legacy;
mod merged;
mod modern;
mod parked;
mod replicas;
mod subscriptions;
mod tasks;
mod tasks_legacy;
mod tasks_modern;
