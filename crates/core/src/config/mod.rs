//! `extensions_config.json`: what a document means (contract chapter 1, as architecture.md §9 and §10 amend it).
//!
//! Text in, servers and problems out. The environment is handed in as a function; the file is found and read in
//! `caribou-workspace`. The file is the truth: nothing here remembers an earlier one. A document that cannot be
//! understood as a whole is refused as a whole, so that the last good one stays; a wrong server is left out with its
//! reason and the others serve, unless it is task-enabled. Keeps O3 (no message repeats a value of the document or of
//! the environment) and B1 (size, depth and number of problems are bounded).
//!
//! [`parse`] is for who serves, [`check`] for who only wants the problems:
//!
//! ```
//! use std::path::Path;
//! use caribou_core::config::{Source, check, parse};
//!
//! let text = br#"{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}, "bad": {"type": "http"}}}"#;
//! let source = Source { file: Path::new("/etc/caribou/extensions_config.json"), text };
//! let environment = |_: &str| None;
//!
//! let document = parse(&source, &environment).expect("one wrong server does not cost the others");
//! assert!(document.servers[0].config.is_ok() && document.servers[1].config.is_err());
//! assert_eq!(
//!     check(&source, &environment)[0].to_string(),
//!     "/etc/caribou/extensions_config.json:1:81: error: $.mcpServers.bad: type http requires 'url' field; \
//!      add \"url\": \"https://…\""
//! );
//! ```

mod caller_headers;
mod change;
mod defaults;
mod document;
pub mod edit;
mod env_refs;
mod etag;
mod fields;
mod frozen;
mod hiding;
mod interceptor;
mod json_text;
mod mask;
mod merge;
mod near_miss;
mod oauth;
pub mod personal;
mod problem;
mod profile;
mod remote;
mod report;
mod required_scopes;
mod routing;
mod server;
mod server_entry;
mod servers_by_name;
mod shared_state;
mod splice;
mod stdio;
mod stored;
mod toolset;
mod view;
mod web_address;
mod write;
mod written;

#[cfg(test)]
mod field_faults;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod samples;

pub use change::{Touch, touch};
pub use document::{Document, Source, check, parse};
pub use etag::{ETag, IfMatch};
pub use frozen::{endpoint_fingerprint, is_same_for_tasks, task_fingerprint};
pub use interceptor::{InterceptorEntry, InterceptorTarget, UnsupportedInterceptors};
pub use json_text::MAX_DOCUMENT_BYTES;
pub use merge::MaskedValue;
pub use problem::{Problem, Severity};
pub use server::{
    ClientAuthentication, HeadersFromContext, OAuth, OAuthGrant, OnMissing, Origin, Remote, Routing, RoutingMode,
    Secret, ServerConfig, ServerEntry, Stdio, TaskToolset, ToolOverride, Transport, UnknownOutcome, UserAuth,
};
pub use servers_by_name::ServersByName;
pub use view::view;
pub use written::holds_secrets;
