//! Stateful sessions: one actor for each (server, user:thread), alive once.
//!
//! ```text
//!            first call for a key                opened                 idle, evicted, closed
//!   (none) ───────────────────────► opening ───────────────► live ───────────────────────────► closing ──► (none)
//!                                      │                       │                                  ▲
//!                                      └── failed, abandoned ──┴── ended by itself ───────────────┘
//! ```
//!
//! [`registry`] decides which sessions exist: room, eviction, backoff, epochs. One [`actor`] owns one session from
//! bring-up to teardown; it is never restarted, because the process it stood for is gone. [`handle`] is what callers
//! hold: it admits a call without a message when the session is live. [`router`] brings the two together, and asks
//! [`home`] where a session lives before one is opened: here, or in another replica, whose session is then held like any
//! other.
//!
//! A session is closed when nobody has called it for a while, or to make room, but never with a call in flight or an
//! unfinished task ([`tenants`]). A key's next session opens only after the last one is gone (invariant S3); the failure
//! of a session can retire only that session, because whoever saw it fail holds its handle (S4).

mod actor;
mod book;
mod closing;
mod events;
mod files;
mod handle;
mod home;
mod joining;
mod opening;
mod pool;
mod reaping;
mod refusal;
mod registry;
mod resuming;
mod router;
mod tenants;

pub(crate) use book::EpochBook;
pub(crate) use events::Oddities;
pub(crate) use handle::{Admitted, Handle, NotAdmitted, NotOpened};
pub(crate) use home::{Home, Homes};
pub(crate) use registry::{Directory, Registry, RegistryMessage, Tally};
pub(crate) use router::Router;
