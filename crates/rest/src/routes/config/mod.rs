//! The stored configuration: read it, and change it whole or one server at a time (contract 2.2).
//!
//! One file for each change; they share the [`answer`] and the [`condition`]. Nothing is decided here: a change is
//! judged, written and put in force by the runtime, as one unit that outlives a caller who goes away.

mod answer;
mod condition;

pub(crate) mod add;
pub(crate) mod history;
pub(crate) mod read;
pub(crate) mod remove;
pub(crate) mod replace_all;
pub(crate) mod replace_one;
pub(crate) mod roll_back;
pub(crate) mod set_enabled;

pub(crate) use condition::Condition;
