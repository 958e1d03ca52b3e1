//! Caribou as one MCP server: what clients of either era see at `/mcp` and `/mcp/{server}`.

mod cancels;
mod client;
mod http_sse;
mod identity;
mod legacy;
mod merged;
mod modern;
mod parked;
mod personal;
mod replicas;
mod scopes;
mod subscriptions;
mod task_notices;
mod tasks;
mod tasks_legacy;
mod tasks_modern;
mod visits;
