//! A scriptable MCP server, in both eras, over stdio, streamable HTTP and HTTP+SSE.
//!
//! A [`Script`] says what it lists and does; [`Seen`] records say what reached it. Without a script it is a
//! well-behaved legacy server. It is strict where the protocol is: a client that leaves a header or a `_meta` member
//! out is refused, so every test of a good call also tests the client.

mod encrypted;
mod event_stream;
mod http;
mod outlet;
mod replies;
mod script;
mod seen;
mod server;
mod stdio;
mod token_endpoint;

pub use http::HttpFake;
pub use script::{Answers, Eras, Framing, Http, Ids, Mismatch, Script, Status, Step, tool};
pub use seen::{Log, Seen};
pub use stdio::{StdioFake, serve as serve_stdio};
pub use token_endpoint::{TokenFake, TokenRequest};
