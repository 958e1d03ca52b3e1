//! What crosses Caribou's borders: framing, eras, limits, hostile servers, and servers that others wrote.
//!
//! The first modules test the tests' own fakes and private servers, since everything else leans on them.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

mod fake_over_http;
mod fake_over_stdio;
mod private_servers;

mod client_legs;
mod endpoint;
mod eras;
mod front;
mod listing;
mod over_http;
mod over_stdio;
mod task_drivers;
mod third_party;
mod third_party_tasks;
