//! Who calls: API keys and signed tokens, behind `ports::identity`.
//!
//! Owns how a key looks and is hashed, which tokens are believed, and how long either is remembered; what a caller may
//! do is core's to say. A credential that cannot be judged lets nobody in. No message repeats a credential or a claim
//! (invariant O3); every cache, wait and answer is bounded (invariant B1).

mod api_keys;
mod digest;
mod jwt;
mod remembered;

pub use api_keys::{ApiKeyCallers, NewKey};
pub use jwt::{ALGORITHMS, JwtCallers, JwtRules, KeySource, UnusableKeys};
