//! Access tokens of upstream servers: one actor for each connection with an `oauth` block (contract 7.3).
//!
//! ```text
//!             expiring, or rejected by the server               given
//!   in hand ───────────────────────────────────► refreshing ───────────► in hand
//!      ▲                                             │
//!      └────────── a caller, 1 s later ── failed ◄───┘ refused, unreachable, lost
//!                                            │
//!                                            └── `invalid_grant` ──► ended, until another refresh token is configured
//! ```
//!
//! [`connection`] is what sessions ask: while a token is good it is read without a message. [`coordinator`] runs one
//! refresh at a time and answers all who wait for it; the request itself is a task of its own, so that nobody who stops
//! waiting cancels it. [`slot`] is the token in hand. Where there is a store, the refresh token to present next stands in
//! a row that all replicas share ([`stored`]); else, and for grants without one, in this process ([`chain`],
//! [`refresh`]). [`chains`] finds the connection of a server; it outlives sessions, discoveries and resets, and is
//! dropped when the settings of its `oauth` block make it another one; its row lives longer ([`rows`]). [`alarm`] tells
//! that a person must act. Nothing here writes to the configuration.

mod alarm;
mod chain;
mod chains;
mod connection;
mod coordinator;
mod patience;
mod refresh;
mod rows;
mod slot;
mod stored;

pub(crate) use chains::Chains;
pub use stored::{ChainTimes, StoredChains};
