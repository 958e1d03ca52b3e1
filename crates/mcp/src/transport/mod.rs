//! The transports: child processes, streamable HTTP, HTTP+SSE. Each offers the same [`crate::channel::Channel`].

pub(crate) mod event_stream;
pub(crate) mod http;
pub(crate) mod http_sse;
pub(crate) mod process;
pub(crate) mod redirect;
pub(crate) mod stdio;
