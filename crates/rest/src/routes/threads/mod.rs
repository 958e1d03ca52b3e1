//! Conversations, as far as they hold sessions.

pub(crate) mod close_sessions;
