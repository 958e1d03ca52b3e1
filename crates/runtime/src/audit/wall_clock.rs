//! The time of day, for people who read rows. Nothing is decided by it, and it may jump.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in milliseconds of the Unix epoch, by this machine's clock.
#[expect(clippy::disallowed_methods, reason = "the one place: the time in a row is only for people")]
pub fn wall_clock_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
