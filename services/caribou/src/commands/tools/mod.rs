//! `caribou tools`: list and call them.

pub(super) mod call;
pub(super) mod list;

mod arguments_json;
mod events;
mod result;
