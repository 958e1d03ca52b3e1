//! Every rule that callers and operators can observe, against the real binary over real HTTP.
//!
//! One replica, its own folder and port. Each test is named by what it promises; where a rule has a paragraph in the
//! contract, its comment names it.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

mod audit;
mod calls;
mod children;
mod commands;
mod config_api;
mod config_commands;
mod config_database;
mod config_reload;
mod configuration;
mod credentials;
mod doctor;
mod grpc;
mod grpc_admin;
mod grpc_python;
mod identity;
mod interceptors;
mod mcp_endpoint;
mod native_tasks;
mod network;
mod oauth;
mod oauth_chains;
mod operations;
mod peers;
mod personal;
mod results;
mod resumed;
mod secrecy;
mod sessions;
mod start_screen;
mod task_grpc;
mod task_routes;
mod tasks;
mod tls;
mod tool_search;
