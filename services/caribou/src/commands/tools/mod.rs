//! `caribou tools`: list and call them.

pub(super) mod arguments_json;
pub(super) mod call;
pub(super) mod events;
pub(super) mod list;

mod result;
