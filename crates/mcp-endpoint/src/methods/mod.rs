//! What clients ask for, one method or family a file; [`run`] tells them apart.

mod call_tool;
mod discover;
mod list_merged;
mod list_tools;
mod offers;
mod pass;
mod run;
mod set_level;
mod subscribe;
mod target;
mod tasks;
mod waiting;

pub(crate) use offers::offers;
pub(crate) use run::run;
