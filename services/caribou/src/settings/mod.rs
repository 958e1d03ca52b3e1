//! Caribou's own settings: `config.yaml`, then `CARIBOU_…` variables, then flags, the later one winning.
//!
//! Owns what can be set, the defaults and the checks; `extensions_config.json` is read elsewhere. A document that is
//! wrong yields all its problems at once, each with its place and how to mend it, and never a value.

mod audit;
mod auth;
mod cluster;
mod configuration;
mod console;
mod database_url;
mod expected;
mod interceptors;
mod layers;
mod mcp_endpoint;
mod network;
mod notify;
mod peers;
mod personal;
mod problem;
mod proxy_url;
mod redis;
mod schema;
mod sections;
mod shutdown;
mod tasks;
mod telemetry;
mod threads;
mod tools;
mod yaml;

pub use audit::{Audit, WhenFull};
pub use auth::{Auth, AuthMode, JwtAuth, NotLoopback, RateLimit};
pub use cluster::{Cluster, Profile};
pub use configuration::{Config, ConfigOrigin};
pub use console::Console;
pub use database_url::DatabaseUrl;
pub use interceptors::{Interceptors, Unsupported};
pub use layers::{File, Flag, Inputs, Loaded, load};
pub use mcp_endpoint::McpEndpoint;
pub use network::{Grpc, Network, Tls};
pub use notify::{Hidden, Notify, Readable, WebhookSettings};
pub use peers::{PeerSecret, PeerTls};
pub use personal::{Deployment, Personal};
pub use problem::Problem;
pub use proxy_url::ProxyUrl;
pub use redis::{Redis, RedisUrl};
pub use schema::{schema, schema_text};
pub use sections::{Calls, Catalog, Log, LogFormat, Protocol, Rest, Sessions, Settings, Stdio};
pub use shutdown::Shutdown;
pub use tasks::{Backend, Database, McpTasks, WhenToolMissing};
pub use telemetry::{OtlpProtocol, TelemetrySettings};
pub use threads::Threads;
pub use tools::{GuardrailLists, GuardrailProvider, Guardrails, ToolSearch};
