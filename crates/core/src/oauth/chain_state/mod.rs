//! Where a stored chain of refresh tokens stands, and what may be done with it (durability.md 3.3 as architecture.md
//! §10 has it; invariants O1, O2).
//!
//! ```text
//!           begin: intent committed              a token came: by generation alone
//!   idle(g) ─────────────────────► in flight(g) ─────────────────────────────────► idle(g+1)
//!      ▲                               │   │                                          ▲
//!      └── not sent, or an error that  │   └─ crash, lost answer, 120 s ─► unknown(g) │ presented once more
//!          was answered completely     │                                     │   └────┘
//!                                      └── `invalid_grant` ─► reauth needed ◄┘ presented twice, or not to be probed
//! ```
//!
//! Owns every decision and no clock: whoever asks brings what the row says at this moment, by the store's clock. A
//! decision that was overtaken fails in the store, which compares generation and lease, and changes nothing.

mod ahead;
mod kind;
mod settlement;
mod state;
mod step;

pub use ahead::refresh_ahead;
pub use kind::AccessKind;
pub use settlement::{Presented, Settlement, settle};
pub use state::ChainState;
pub use step::{AccessSeen, ChainPolicy, ChainSeen, Step, next};
