//! Personal connections: the servers that users bring for themselves, beside those of the deployment.
//!
//! [`users`] holds who asked lately, a bounded number of them; [`user`] is one user's own servers, as fresh as one look
//! a second keeps them, with a catalogue of the same code as the deployment's; [`sight`] is what one user sees: the
//! deployment's tools and its own, the deployment's first, so that nobody's own connection takes a name over.
//! [`desk`] shows and changes what is stored, for its owner only.
//!
//! A personal server is known by its runtime name everywhere, which its owner, its name and its whole definition go
//! into: its sessions, tokens and failures are nobody else's, and none of them outlives an edit (invariants P1, G1).
//! When the store is away, what is known goes on; who was never looked up has none until it is back, and is told.

mod desk;
mod sight;
mod user;
mod users;

pub use desk::{ConnectionView, ConnectionsView};
pub(crate) use user::User;
pub(crate) use users::Users;
