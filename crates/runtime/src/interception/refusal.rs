//! What callers are told when an interceptor stops a call. Names interceptor and tool, never a value.

use caribou_core::bounds::MAX_DENIAL_CHARS;
use caribou_core::failure::Code;
use caribou_ports::interceptor::{InterceptedCall, InterceptorError};

use crate::error::VerbError;

fn tool(call: &InterceptedCall) -> String {
    format!("tool `{}`", call.visible_name)
}

/// It denied the call.
pub(super) fn denied(name: &str, call: &InterceptedCall, why: &str) -> VerbError {
    let why: String = why.chars().take(MAX_DENIAL_CHARS).collect();
    VerbError::new(Code::Denied, format!("{} may not be called: interceptor `{name}` denied it: {why}", tool(call)))
}

/// It set a header that may not be sent; the call is not made without it.
pub(super) fn unsendable(name: &str, call: &InterceptedCall, what: impl std::fmt::Display) -> VerbError {
    VerbError::new(Code::Denied, format!("{} was not called: interceptor `{name}` sets {what}", tool(call)))
}

/// It was not heard before the call.
pub(super) fn not_called(call: &InterceptedCall, error: &InterceptorError) -> VerbError {
    VerbError::new(Code::Unavailable, format!("{} was not called: {error}", tool(call)))
}

/// It was not heard on the way back. A call that was sent has happened, and must not look as if it could be repeated
/// (invariant S2).
pub(super) fn not_shown(call: &InterceptedCall, was_sent: bool, error: &InterceptorError) -> VerbError {
    if was_sent {
        let detail =
            format!("{} was called and may have had effects, but its result cannot be shown: {error}", tool(call));
        VerbError::new(Code::OutcomeUnknown, detail)
    } else {
        not_called(call, error)
    }
}
