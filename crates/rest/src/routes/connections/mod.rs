//! Personal connections of a user: list, show, put and delete them.
//!
//! The user itself asks, or an agent for it; nobody else sees that there are any. Nothing is decided here: a definition
//! is judged, stored and put in force by the runtime, as one unit that outlives a caller who goes away.

mod answer;

pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod put;
pub(crate) mod read;
