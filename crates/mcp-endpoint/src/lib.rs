//! Caribou as one MCP server: streamable HTTP of both eras, over the verbs of the runtime.
//!
//! Owns what an MCP client reads and writes: JSON-RPC, sessions of the legacy era, the per-request metadata and headers
//! of the modern one, event streams. `/mcp` shows the tools of all servers by their visible names, `/mcp/{server}` one
//! server by its own names. The era is chosen for each request by what it carries (mcp.md 14.2). Where it is switched on,
//! `/sse` and `/sse/{server}` serve clients of HTTP+SSE the same way (mcp.md §3.4).
//!
//! Decides nothing about upstream sessions, servers or tools. The two sides are independent hops: versions,
//! capabilities, session ids, progress tokens and request ids are never passed on. Arguments and results are (invariant
//! W1). Who asks was told before a request comes here; a session of one principal is nobody else's (P1).

mod answer;
mod asking;
mod body;
mod dress;
mod era;
mod fault;
mod fresh;
mod http_sse;
mod in_flight;
mod legacy;
mod message;
mod meta;
mod methods;
mod modern;
mod notices;
mod options;
mod place;
mod protected;
mod relay;
mod router;
mod running;
mod sessions;
mod standing;
mod tasks;
mod watching;
mod words;
mod work;
mod work_span;

pub use options::EndpointOptions;
pub use protected::{Protected, challenge};
pub use router::router;
