//! `caribou config`: what is configured and what can be, written, shown and changed.
//!
//! Changes are made by the API of a replica, of one that runs or of one inside this process, so they are judged the
//! same either way, and a change in between is noticed by the tag. Secrets are never shown.

pub(super) mod add;
pub(super) mod diff;
pub(super) mod get;
pub(super) mod history;
pub(super) mod init;
pub(super) mod remove;
pub(super) mod reset;
pub(super) mod rollback;
pub(super) mod schema;
pub(super) mod set;
pub(super) mod switch;

mod examples;
mod fields;
mod settings_file;
mod stored;
