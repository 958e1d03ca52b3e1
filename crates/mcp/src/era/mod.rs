//! The two eras of the protocol: which one a server speaks, and how each is opened (mcp.md §2, §3.2, §3.5).

pub(crate) mod handshake;
pub(crate) mod memory;
pub(crate) mod probe;
pub(crate) mod stateless;

use std::sync::Arc;

use caribou_core::era::Era;
use serde_json::value::RawValue;

/// What a server said of itself when it was opened.
#[derive(Clone, Debug)]
pub(crate) struct Greeting {
    /// The era in use.
    pub(crate) era: Era,
    /// The revision in use.
    pub(crate) version: String,
    /// The server's `Implementation` object.
    pub(crate) server_info: Option<Arc<RawValue>>,
    /// The server's capabilities.
    pub(crate) capabilities: Option<Arc<RawValue>>,
}
