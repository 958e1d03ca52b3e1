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
//! refresh at a time and answers all who wait for it; the request itself is a task of its own ([`refresh`]), so that
//! nobody who stops waiting cancels it. [`slot`] is the token in hand, [`chain`] the refresh token to present next.
//! [`chains`] finds the connection of a server; it outlives sessions, discoveries and resets, and is dropped when the
//! settings of its `oauth` block make it another one. What is rotated stays in this process's memory: nothing here
//! writes to the configuration.

mod chain;
mod chains;
mod connection;
mod coordinator;
mod refresh;
mod slot;

pub(crate) use chains::Chains;
