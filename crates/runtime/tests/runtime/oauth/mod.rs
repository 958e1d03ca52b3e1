//! Chains of access tokens (contract 7.3, 7.4), under virtual time and with a token endpoint in memory.

mod asking;
mod chains;
mod endpoint;
