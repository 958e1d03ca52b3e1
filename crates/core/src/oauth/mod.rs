//! What is asked of a token endpoint, what its answer means, and when it is asked again (contract 7.1 to 7.3).
//!
//! Owns the rules alone: which fields a request has, which answers hold a token, which token counts as expiring, which
//! refusals end a chain, and which settings make it another chain. Sending is `caribou-oauth`'s, when and by whom is
//! the runtime's.

pub mod answer;
pub mod chain;
pub mod chain_state;
pub mod form;
pub mod freshness;
pub mod refusal;
#[cfg(test)]
mod samples;

pub use answer::{Given, NotGiven};
pub use chain::Fingerprint;
pub use form::{CannotAsk, basic, form};
pub use freshness::is_expiring;
pub use refusal::Refusal;
