//! How long to wait before a server that fails to start is started again.

use std::time::Duration;

/// Failures in a row that are retried at once: one bad start may be chance.
const FREE_FAILURES: u32 = 2;

/// The first wait.
const BASE: Duration = Duration::from_secs(1);

/// The longest wait: a mended server is picked up within half a minute without anybody's help.
const CAP: Duration = Duration::from_secs(30);

/// The wait before the next start, after `failures` failed starts in a row.
///
/// Zero for the first few, then doubling from one second to half a minute.
pub fn before_next_start(failures: u32) -> Duration {
    let Some(step) = failures.checked_sub(FREE_FAILURES + 1) else { return Duration::ZERO };
    BASE.saturating_mul(1 << step.min(10)).min(CAP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_starts_late_doubles_and_is_capped() {
        let waits: Vec<u64> = (0..10).map(|failures| before_next_start(failures).as_secs()).collect();
        assert_eq!(waits, [0, 0, 0, 1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(before_next_start(u32::MAX), CAP);
    }
}
