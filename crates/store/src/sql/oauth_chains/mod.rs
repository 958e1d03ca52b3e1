//! Chains of rotating refresh tokens. What each condition compares is what its caller saw (invariants O1, O2).

mod durable;
mod port;
mod rows;
mod statements;
