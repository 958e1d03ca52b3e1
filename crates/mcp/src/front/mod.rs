//! A stdio front of one remote server: whoever speaks MCP in lines to this process speaks to a server over streamable
//! HTTP, in either era (mcp.md §3.1, §3.3, §3.5).
//!
//! ```text
//!   client ──lines──► client ──► ask (one POST a request) ──► server
//!          ◄──lines── answers ◄── its answer, and what the server asks or tells beside it
//!                             ◄── listen (the GET stream of a legacy session)
//! ```
//!
//! Owns what the two framings need of one another: the session header, the headers that mirror a message, cancellation
//! (a line there, a closed stream here), and an answer for every request whose server gives none. Reads envelopes only:
//! ids, parameters and results pass as they come, blanks between lines excepted (invariant W1). A request that may have
//! been processed is never sent again (S2); every queue and wait is bounded (B1); no credential is printed (O3).

mod answers;
mod ask;
mod bridge;
mod client;
mod fault;
mod listen;
mod out;
mod relearn;
mod run;

pub use run::{Front, FrontError, FrontOptions};
