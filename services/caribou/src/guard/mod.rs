//! The guard: a second process of the same binary that owns every stdio child.
//!
//! ```text
//!   caribou serve (main)                       caribou guard                    the servers
//!  ┌────────────────────┐   Spawn Kill Trust  ┌─────────────────┐   fork    ┌────────────────┐
//!  │ client  Guard      │ ──────────────────► │ keeper          │ ────────► │ child-shim     │
//!  │ supervisor         │ ◄────────────────── │   kept          │           │   │ exec       │
//!  └────────────────────┘    Started Refused  └─────────────────┘           │   ▼            │
//!       ▲                    Exited Gone                                    │ npx … server   │
//!       │                                                                   └────────────────┘
//!       └───────────── the bytes of stdin, stdout and stderr: never through the guard ──┘
//! ```
//!
//! Why a process of its own: a child must die with Caribou even on SIGKILL, and a Caribou that is frozen cannot end
//! its children itself. The three descriptors of a child travel to the guard once, over the Unix socket
//! (`SCM_RIGHTS`); what is said over them costs nothing extra.
//!
//! | who dies | what ends the children |
//! | --- | --- |
//! | main, by whatever | the guard sees the socket close and kills everything it has |
//! | the guard, by SIGKILL | the parent-death signal takes each leader; main, a subreaper, sweeps what is left and starts a new guard |
//! | a leader alone | its group stays until the client ends it, so that nobody waits for a pipe held by a grandchild |
//! | nobody, but this replica is not trusted any more | the guard kills all of them when the trust that it was told ends |
//! | both at the same instant | the leaders die; the next start on this machine finds the others by their marks |
//!
//! A process that leaves its group or its session is still found: it becomes an orphan, orphans become children of
//! the guard, and its session or its mark (`CARIBOU_CHILD` in its environment) names the child it came from.
//!
//! While replicas share sessions, trust ends with the lease of this one and is counted by a clock that no suspend
//! stops, so that another replica never starts a session whose child lives here still (invariant L1). The guard also
//! holds the lock of this life: main and guard both die before it is free.
//!
//! Invariants kept here: S3 (a child is reported gone when nothing of it is alive), B1 (bounded table, every wait has
//! a deadline), O3 (no frame, error or log line shows an argument or an environment value).

pub mod keeper;
pub mod shim;

mod client;
pub(crate) mod clock;
mod frame;
mod kept;
mod processes;
mod roster;
mod socket;
mod startable;
mod supervisor;
pub(crate) mod sweep;

pub use client::{Guard, GuardError, GuardOptions};
pub(crate) use startable::could_start;
