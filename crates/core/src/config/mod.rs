//! `extensions_config.json`: what a document means (contract chapter 1).
//!
//! Text in, servers and problems out. The environment is handed in as a function; files are read elsewhere.

mod server;

pub use server::{
    HeadersFromContext, OAuth, OAuthGrant, OnMissing, Remote, Routing, RoutingMode, Secret, ServerConfig, ServerEntry,
    Stdio, TaskToolset, ToolOverride, Transport, UserAuth,
};
