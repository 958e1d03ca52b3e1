//! Callers that present a signed token of an issuer (RFC 7519, RFC 8725).

mod authenticator;
mod key;
mod key_set;
mod source;

pub use authenticator::{ALGORITHMS, JwtCallers, JwtRules};
pub use source::{KeySource, UnusableKeys};
