//! Clients and the conformance suite that others wrote, at Caribou as one MCP server.

mod clients;
mod conformance;
mod statements;
mod through_replicas;
