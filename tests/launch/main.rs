//! The launch policy against the real npx: what we refuse runs code, what we accept reaches the server.
//!
//! Two releases of npm are asked, the one that the contract's tables describe and the one of this machine; `tests/run`
//! installs both as packages. Everything they fetch comes from a registry on loopback, everything they keep lies in
//! the test's own folder.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

mod canary;
mod npm;
mod reading;
mod registry;
