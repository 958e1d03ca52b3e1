//! Interceptors outside of this process, against real servers on loopback.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

mod builtin;
mod call;
mod failures;
mod over_grpc;
mod over_http;
