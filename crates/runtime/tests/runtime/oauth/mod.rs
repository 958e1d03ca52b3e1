//! Chains of access tokens (contract 7.3 to 7.6), under virtual time and with a token endpoint in memory.

mod asking;
mod chains;
mod cluster;
mod dice;
mod endpoint;
mod shared;
mod simulation;
mod small_scope;
