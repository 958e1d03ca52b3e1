//! Hints between replicas: over Redis, and within one process (durability.md §4; invariant G2).
//!
//! Owns how a generation is told and heard, and nothing of what follows from it. Redis holds no truth: what is lost
//! there is found in the store, later. Every request has a deadline (invariant B1), and nothing of an address is
//! printable (invariant O3).

mod facts;
mod in_process;
mod redis_signal;
mod subscription;

pub use facts::RedisFacts;
pub use in_process::InProcess;
pub use redis_signal::{NotAnAddress, RedisSignal};
