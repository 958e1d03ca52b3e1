//! When the remote is asked again (contract 6.5, intervals). All waits count from the end of the call before.

use std::time::Duration;

use super::limits::{MAX_POLL_HINT, TaskLimits};
use super::status::Status;

/// After an answer; `None` = never, because it was the last one.
pub fn after_answer(status: Status, poll_after_seconds: Option<f64>, limits: &TaskLimits) -> Option<Duration> {
    if status.is_terminal() {
        return None;
    }
    let hint = poll_after_seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(MAX_POLL_HINT));
    let wanted = hint.unwrap_or_else(|| limits.poll_interval());
    let slow = Duration::from_secs(limits.input_required_poll_interval_seconds.into());
    let least = if status == Status::InputRequired { slow } else { Duration::ZERO };
    Some(wanted.max(least).min(MAX_POLL_HINT))
}

/// After an error that follows `earlier` ones in a row. There is no limit of attempts.
pub fn after_error(earlier: u32, limits: &TaskLimits) -> Duration {
    limits.backoff(earlier)
}

/// After an attempt to cancel that did not end the task; `attempts` counts it. There is no limit of attempts
/// (contract 6.10).
pub fn after_cancel(attempts: u32, limits: &TaskLimits) -> Duration {
    limits.backoff(attempts.saturating_sub(1))
}

/// Whether callers are told that the task is hard to follow, after this many errors in a row.
pub fn is_degraded(errors: u32, limits: &TaskLimits) -> bool {
    errors >= limits.tracking_degraded_after_errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: Status, hint: Option<f64>) -> Option<f64> {
        after_answer(status, hint, &TaskLimits::default()).map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn the_remote_decides_within_a_day_and_a_question_is_asked_slowly() {
        // Contract 6.5, intervals; contract 6.2, input_required.
        for (status, hint, wait) in [
            (Status::Submitted, None, 5.0),
            (Status::Working, None, 5.0),
            (Status::Working, Some(12.5), 12.5),
            (Status::Working, Some(0.25), 0.25),
            (Status::Working, Some(1e20), 86_400.0),
            (Status::InputRequired, None, 60.0),
            (Status::InputRequired, Some(1.0), 60.0),
            (Status::InputRequired, Some(90.0), 90.0),
            (Status::InputRequired, Some(1e300), 86_400.0),
        ] {
            assert_eq!(answered(status, hint), Some(wait), "{status:?} {hint:?}");
        }
    }

    #[test]
    fn what_has_ended_is_not_polled() {
        // Contract 6.5, terminal.
        for status in [Status::Completed, Status::Failed, Status::Cancelled, Status::Unknown] {
            assert_eq!(answered(status, Some(1.0)), None);
        }
    }

    #[test]
    fn errors_are_counted_from_before_the_failure() {
        // Contract 6.5, error backoff: the first retry waits one interval.
        let limits = TaskLimits { max_poll_backoff_seconds: 30, ..TaskLimits::default() };
        assert_eq!((after_error(0, &limits).as_secs(), after_error(4, &limits).as_secs()), (5, 30));
        // Contract 6.10, retry.
        let waits = [1, 2, 3, 4].map(|attempts| after_cancel(attempts, &limits).as_secs());
        assert_eq!(waits, [5, 10, 20, 30]);
    }

    #[test]
    fn tracking_is_degraded_from_the_configured_error_on() {
        // Contract 2.3, tracking_degraded.
        assert_eq!([2, 3, 4].map(|errors| is_degraded(errors, &TaskLimits::default())), [false, true, true]);
    }
}
