//! How failures are told apart: the class says what a program may do about it, the code is what a caller reads.

use std::fmt;

use serde::Serialize;

/// What may be done about a failure. Every error of every port answers with one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Nothing happened; the same request may be sent again.
    Retry,
    /// Somebody else changed the same thing first.
    Conflict,
    /// The thing asked for does not exist.
    NotFound,
    /// The caller may not.
    Denied,
    /// The request itself is wrong.
    Invalid,
    /// It may have happened. Never becomes `Retry` (invariant S2).
    Unknown,
    /// We are wrong.
    Bug,
}

/// The stable word a caller branches on, the same on every way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// A bound was reached; nothing was done.
    Busy,
    /// The server, tool, session or thread does not exist.
    NotFound,
    /// The caller, or the credential used upstream, may not.
    Denied,
    /// The request is malformed.
    Invalid,
    /// Somebody else was faster.
    Conflict,
    /// What the call was made under no longer holds.
    ConfigChanged,
    /// The call may have had effects; nobody can tell.
    OutcomeUnknown,
    /// The session ended before the call reached it.
    SessionEnded,
    /// The upstream server answered with an error of its own, or with something that is not MCP.
    UpstreamError,
    /// A limit of time was reached.
    Timeout,
    /// The upstream server cannot be reached or started.
    Unavailable,
}

impl Code {
    /// Every code.
    pub const ALL: [Self; 11] = [
        Self::Busy,
        Self::NotFound,
        Self::Denied,
        Self::Invalid,
        Self::Conflict,
        Self::ConfigChanged,
        Self::OutcomeUnknown,
        Self::SessionEnded,
        Self::UpstreamError,
        Self::Timeout,
        Self::Unavailable,
    ];

    /// The word as it stands on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::NotFound => "not_found",
            Self::Denied => "denied",
            Self::Invalid => "invalid",
            Self::Conflict => "conflict",
            Self::ConfigChanged => "config_changed",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::SessionEnded => "session_ended",
            Self::UpstreamError => "upstream_error",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
        }
    }

    /// What a caller may do about it.
    pub fn class(self) -> Class {
        match self {
            Self::Busy | Self::Unavailable | Self::SessionEnded => Class::Retry,
            Self::Conflict | Self::ConfigChanged => Class::Conflict,
            Self::NotFound => Class::NotFound,
            Self::Denied => Class::Denied,
            Self::Invalid | Self::UpstreamError => Class::Invalid,
            Self::OutcomeUnknown | Self::Timeout => Class::Unknown,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_happened_is_never_a_retry() {
        assert_eq!(Code::OutcomeUnknown.class(), Class::Unknown);
        assert_eq!(Code::Timeout.class(), Class::Unknown);
    }

    #[test]
    fn the_wire_word_is_the_serialised_word() {
        for code in [Code::Busy, Code::OutcomeUnknown, Code::ConfigChanged, Code::UpstreamError] {
            assert_eq!(serde_json::to_string(&code).ok(), Some(format!("\"{code}\"")));
        }
    }
}
