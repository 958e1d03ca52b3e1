//! The runtime's verbs over HTTP: routes, error bodies, OpenAPI, the web console.
//!
//! Owns what a caller reads and writes on the wire; decides nothing about sessions, servers or tools: each route
//! turns a request into one verb of `caribou-runtime` and the verb's answer into a response. Raw JSON (`arguments`,
//! `result`, `tool`) goes through as text and is never parsed or written anew (invariant W1). Every failure has the
//! one body of `problem`. Bodies, waits and connections are bounded (B1); request secrets are dropped while the body
//! is read (O3).

mod body;
mod console;
mod door_span;
mod elapsed;
mod envelope;
mod event_stream;
mod identity;
mod openapi;
mod options;
mod problem;
mod router;
mod routes;
mod scope;
mod serve;
mod site;
mod unhurried;

pub use openapi::document;
pub use options::{ChallengeMore, MetricsText, Readiness, RestOptions};
pub use router::router;
pub use serve::{ServerConfigs, serve};
