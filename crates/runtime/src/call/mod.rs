//! One call on its way: what `api/call_tool` drives.
//!
//! ```text
//!   guardrails ─► permission ─► catalogue ─► prepare ─► attempt ─► finish
//!                                              │           │          └ interceptors see the result, last one first
//!                                              │           └ a session of user, thread and credentials; the call
//!                                              └ the caller's headers, then the interceptors in order
//! ```
//!
//! [`prepare`] decides what the call carries, before any traffic: a caller without a credential ends there. [`attempt`]
//! sends it, again only while it surely has not reached its server (invariant S2): its session was lost between two calls,
//! or moves from one replica to another. [`bounds`] owns how long it
//! may take, [`failure`] how a failure is told.

mod attempt;
mod bounds;
mod failure;
mod prepare;

pub(crate) use attempt::{Answered, answered};
pub(crate) use attempt::{MOVE_PAUSE, MOVES};
pub(crate) use bounds::Bound;
pub(crate) use failure::{call_failed, kept_back};
pub(crate) use prepare::{Prepared, Way, call_headers, header_meta, prepare};
