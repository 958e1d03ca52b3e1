//! Chains of refresh tokens. Never a token (invariant O3).

pub(crate) mod forget;
pub(crate) mod list;
pub(crate) mod refresh;
