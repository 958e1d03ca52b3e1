//! How spans of time are shown: whole milliseconds, as a JSON number.

use std::time::Duration;

/// The milliseconds of `span`, at most what 64 bits hold.
pub(crate) fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
