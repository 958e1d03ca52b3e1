//! The `caribou` binary as a library: settings, assembly, commands, guard process, lifecycle, telemetry.
//!
//! A library so that a second binary can be built from the very same code; `main.rs` only calls [`run`]. No rule of
//! Caribou stands here: this crate reads what an operator wrote, puts the parts together and shows what they say.

mod alone;
mod assemble;
mod cluster;
mod commands;
mod credentials;
mod demo;
mod doors;
mod entry;
#[cfg(feature = "faults")]
mod faults;
mod followed;
mod lifecycle;
mod machine;
mod mcp_endpoint;
mod start_gate;
mod tasks;
mod telemetry;
mod tls;
mod unspent;
mod volume;

pub mod guard;
pub mod settings;

pub use entry::run;
