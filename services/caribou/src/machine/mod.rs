//! What this machine does for the lives of replicas that share a database: the clock and the guard of this one, and
//! proof that others are gone (durability.md 2.2, guard).

mod identity;
mod life_lock;
mod this;

pub(crate) use life_lock::LifeLock;
pub(crate) use this::ThisMachine;
