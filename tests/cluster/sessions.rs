//! Sessions over several replicas: one child for each key, reached from everywhere, whatever happens to whoever has it
//! (durability.md 2, A6; invariants L1, L2, S1 to S3).
//!
//! Callers go round the replicas as behind a load balancer that knows nothing of sessions. What was done is read from
//! the servers' own diary, what was heard from the callers' history, and who took what from triggers in the database.

pub(crate) mod balancer;
pub(crate) mod history;
pub(crate) mod replicas;
pub(crate) mod stand;
pub(crate) mod verdict;
pub(crate) mod witness;

mod clocks;
mod counting;
mod guard_off;
mod storm;
