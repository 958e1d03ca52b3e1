//! Callers that present a key of ours.

mod authenticator;
mod key;

pub use authenticator::ApiKeyCallers;
pub use key::NewKey;
