//! Requests to token endpoints over HTTP (contract 7.1, 7.2).
//!
//! [`endpoint`] sends one request and tells how it came out; [`body`] takes an answer apart; [`masking`] keeps what was
//! sent and what came back out of every message. What a request holds and what an answer means is decided by
//! `caribou_core::oauth`; when one is sent, by the runtime. Nothing is repeated, no redirect is followed, no connection
//! is kept: token requests are rare, and an idle connection that just broke would leave it open whether a refresh
//! token was spent.

mod body;
mod client;
mod endpoint;
mod masking;
mod patience;
#[cfg(test)]
mod tests;

pub use endpoint::TokenEndpoints;
