//! The web console: its pages in a real browser, and its routes without one.
//!
//! What is checked in the browser is written in the scripts beside; the tests here give them a Caribou to look at.
//! Pictures of every page lie under `target/console` afterwards.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

mod pages;
mod routes;
