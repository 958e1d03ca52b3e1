//! The clock that trust is counted by: the machine's own, which nobody sets and no suspend stops. Main and guard read
//! the same one.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// For how long this machine has been up, the time in which it was suspended counted.
pub(crate) fn uptime() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or_default();
    Duration::new(now.tv_sec.unsigned_abs(), nanoseconds)
}

/// The same in whole milliseconds, as it is told from main to guard. Too long for them = no end.
pub(super) fn milliseconds(uptime: Duration) -> Option<u64> {
    u64::try_from(uptime.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptime_grows_and_for_ever_is_no_number() {
        let before = uptime();
        assert!(before > Duration::ZERO && uptime() >= before);
        assert_eq!(milliseconds(Duration::from_micros(2_999)), Some(2), "never later than it is");
        assert_eq!(milliseconds(Duration::MAX), None);
    }
}
