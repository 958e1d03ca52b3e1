//! `load replicas`: what a call costs more that comes in by the door of a replica that does not hold its session.
//!
//! [`plan`] is the command line, [`measured`] starts two replicas with a PostgreSQL and a Redis of their own and has the
//! same calls made at the one that holds the sessions and at the other one, in turn, and then [`reach`] resets both;
//! [`report`] holds the figures against their limits. Everything is started privately and gone at the end. What cannot be
//! started ends the run, with its reason.

mod measured;
mod plan;
mod reach;
mod report;

pub(crate) use plan::{Plan, measure};
