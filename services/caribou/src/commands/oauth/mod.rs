//! `caribou oauth`: chains of refresh tokens, without a token. They are a replica's, so one is named. For admins.

mod chains;

pub(in crate::commands) mod forget;
pub(in crate::commands) mod list;
pub(in crate::commands) mod refresh;
pub(in crate::commands) mod show;

pub(in crate::commands) use chains::OneServer;
