//! The gRPC API that platform services use: `proto/caribou/v1`, health and reflection; and `peer`, what replicas say to
//! one another.
//!
//! Owns what a caller reads and writes on the wire; decides nothing about sessions, servers or tools: each method
//! turns a request into one verb of `caribou-runtime` and the verb's answer into a response. JSON (`arguments`,
//! `result`, `tool`) goes through as text and is never written anew (invariant W1). Every failure has one of the
//! statuses of `status`. Messages, waits, streams and connections are bounded (B1).

mod convert;
mod deadline;
mod door_span;
mod envelope;
mod identity;
mod options;
mod patient;
mod peer;
mod serve;
mod server;
mod signs_of_life;
mod status;

pub use options::{GrpcOptions, Readiness};
pub use peer::{ClientConfigs, Happened, Membership, Owner, PeerClient, PeerDoor, PeerOptions, Running, serve_peers};
pub use serve::{ServerConfigs, serve};
