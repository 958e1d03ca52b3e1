//! `caribou tasks`: what runs in the background, of one thread or of everybody. A replica follows tasks, so one is
//! named.

mod named;

pub(in crate::commands) mod answer;
pub(in crate::commands) mod cancel;
pub(in crate::commands) mod list;
pub(in crate::commands) mod redeliver;
pub(in crate::commands) mod show;
pub(in crate::commands) mod watch;

pub(in crate::commands) use named::{Task, is_end};
