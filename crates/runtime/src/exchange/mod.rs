//! Calls that other replicas make in sessions of this one (durability.md 2.2, forward; invariants S1, S2).
//!
//! ```text
//!   begun ──► running ──────────────► answered ──► forgotten
//!               │  ▲                      ▲
//!               ▼  │ asked again          │
//!              lost ──(nobody asks again in time)──► cancelled
//! ```
//!
//! A call has a name in the whole cluster. Asked for again under it, because the connection was lost, it is joined and
//! never made a second time: [`book`] knows which calls were made here. [`running`] is one of them, which goes on for a
//! while when the connection to its caller is lost.

mod book;
mod running;

pub(crate) use book::CallBook;
pub(crate) use running::Call;
pub use running::RunningExchange;
