//! How something is held: one piece of work on one row by a claim that names itself in every write, everything else by
//! the one lease of the replica that holds it (architecture.md §3).

mod claim;
mod replica_lease;

pub use claim::{Held, Token};
pub use replica_lease::{LeaseProfile, LifeOver, Sighting, renewed};
