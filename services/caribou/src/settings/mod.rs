//! Caribou's own settings: `config.yaml`, then `CARIBOU_…` variables, then flags, the later one winning.
//!
//! Owns what can be set, the defaults and the checks; `extensions_config.json` is read elsewhere. A document that is
//! wrong yields all its problems at once, each with its place and how to mend it, and never a value.

mod database_url;
mod expected;
mod layers;
mod loopback;
mod problem;
mod schema;
mod sections;
mod threads;
mod tools;
mod yaml;

pub use database_url::DatabaseUrl;
pub use layers::{File, Flag, Inputs, Loaded, load};
pub use loopback::{NotLoopback, require_loopback};
pub use problem::Problem;
pub use schema::{schema, schema_text};
pub use sections::{Calls, Catalog, Log, LogFormat, Protocol, Rest, Sessions, Settings, Stdio};
pub use threads::Threads;
pub use tools::{GuardrailLists, GuardrailProvider, Guardrails, ToolSearch};
