//! The echo servers: the cheapest MCP servers we can write, so that what is measured is the way to them.
//!
//! Owns the tool `echo`, and others to fill a list, in either era, over HTTP and over stdio. No state, no validation beyond what a client needs
//! to find the era (mcp.md §3.2, §3.5). A request they do not know is refused as JSON-RPC says; input that is no
//! JSON-RPC at all is dropped on stdio and answered 400 over HTTP. Part of W1: the answer repeats the message's own
//! bytes.

mod answer;
mod http;
mod stdio;

pub(crate) use answer::{Answer, answer};
pub(crate) use http::serve_http;
pub(crate) use stdio::serve_stdio;
