//! What holds of the runtime whatever its servers are, under virtual time and with servers in memory.

#![expect(clippy::unwrap_used, reason = "an unwrap that fails fails its test")]

mod audit;
mod borders;
mod catalog;
mod configuration;
mod credentials;
mod fake;
mod followed;
mod intercepted;
mod interceptors;
mod oauth;
mod permissions;
mod personal;
mod races;
mod random_edits;
mod replicas;
mod resets;
mod sessions;
mod tasks;
mod thread_files;
mod tool_search;
