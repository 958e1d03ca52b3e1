//! The rules of Caribou: everything that decides, nothing that touches the world.
//!
//! Owns ids, states, and every decision that can lose data, run a call twice or leak a secret. Pure by
//! construction: no async, no clock, no random numbers, no I/O and no logging; what a decision needs from outside
//! (the time, a file's text, an environment variable) is handed in, and what should happen is handed back.

pub mod backoff;
pub mod bounds;
pub mod config;
pub mod credentials;
pub mod era;
pub mod failure;
pub mod guardrails;
pub mod headers;
pub mod holding;
pub mod identity;
pub mod ids;
pub mod instant;
pub mod invariants;
pub mod launch;
pub mod masker;
pub mod namespace;
pub mod network;
pub mod notification;
pub mod oauth;
pub mod raw;
pub mod reset;
pub mod result;
pub mod session;
pub mod task;
pub mod tool;
