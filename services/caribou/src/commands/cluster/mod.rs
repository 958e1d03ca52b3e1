//! `caribou cluster`: a few replicas on this machine, over PostgreSQL and Redis, to see what a cluster does.
//!
//! For trying out only: everything listens on loopback, replicas speak to one another unencrypted, and what the private
//! servers hold goes with them. Each replica is a process of its own, so that one can be killed. Nothing outlives this
//! process: it ends them in order, and when it is killed itself the kernel ends them. Only private servers that were
//! started by root, hence as `nobody`, go on then.

mod child;
mod private;
mod programs;
mod run;
mod seats;

pub(super) use run::{Arguments, run};
