//! The context of a trace between two hops: read from what a caller said, told to whoever is asked next.
//!
//! Owns the form on the wire (W3C Trace Context: `traceparent` and `tracestate`, as headers, gRPC metadata or members of
//! `_meta`, mcp.md §2.2) and nothing else: spans are made where something happens. A crate of its own because doors and
//! adapters need it that must not know each other.
//!
//! Free when nobody exports spans: a span is then disabled, nothing is read and nothing is told. A context that cannot be
//! read counts as none; it never fails a request.

mod context;

pub use context::{KEYS, TraceContext, of_headers};
