//! The settings `mcp_tasks.*` (contract 6.1, with the additions of architecture.md §10), and the limits nobody sets.

use std::time::Duration;

use crate::bounds;

/// Characters of an error that are stored.
pub const MAX_ERROR_CHARS: usize = 4_000;

/// Bytes of the question of a task that waits for input, and of an answer to it.
pub const MAX_INPUT_BYTES: usize = 65_536;

/// Bytes of the reference to a result that lies elsewhere.
pub const MAX_ARTIFACT_BYTES: usize = 65_536;

/// The longest that a remote may ask us to wait: a day.
pub const MAX_POLL_HINT: Duration = Duration::from_secs(86_400);

/// Characters of a tool's own error that are passed on.
pub const MAX_TOOL_ERROR_CHARS: usize = 500;

/// Characters of an error that callers read.
pub const MAX_PUBLIC_ERROR_CHARS: usize = 500;

/// Characters of a remote's name of a task.
pub const MAX_REMOTE_ID_CHARS: usize = 255;

/// The longest name of a task, in characters (contract 6.1).
pub const MAX_TASK_NAME_CHARS: usize = 255;

/// How long a caller waits for the cancellation of what could not be stored; then it goes on in the background.
pub const COMPENSATION: Duration = Duration::from_secs(5);

/// Answers to the questions of one task: it asks a person, so more means a loop.
pub const MAX_ANSWERS: usize = 256;

/// Characters of the name of an answer.
pub const MAX_INPUT_ID_CHARS: usize = 255;

/// `mcp_tasks`. Read once, at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLimits {
    /// Whether tasks are followed; `None` = if the store is a database (architecture.md §10).
    pub enabled: Option<bool>,
    /// Between two polls of a task whose remote names no time of its own. Seconds.
    pub poll_interval_seconds: u32,
    /// How long a claim holds. Seconds.
    pub lease_seconds: u32,
    /// Polls at the same time in one replica.
    pub max_concurrent_polls: u32,
    /// The longest wait after an error. Seconds.
    pub max_poll_backoff_seconds: u32,
    /// The shortest time between two polls of a task that waits for input. Seconds.
    pub input_required_poll_interval_seconds: u32,
    /// Errors in a row from which on callers are told that a task is hard to follow.
    pub tracking_degraded_after_errors: u32,
    /// The largest result that is stored, as compact JSON. Bytes.
    pub max_result_bytes: u32,
    /// Characters that are kept of a larger one.
    pub result_preview_max_chars: u32,
    /// The largest answer to a question for the status that is read. Bytes.
    pub max_status_bytes: u32,
    /// What a configured tool costs that its server does not have.
    pub missing_tool: MissingTool,
    /// Attempts at the same time for tasks of one server, by one replica (durability.md 1.10).
    pub per_server: u32,
    /// Polls of one server in a second, by one replica (durability.md 1.10).
    pub polls_per_second: u32,
}

/// What it costs that a server lacks a tool of its toolsets, found after a successful discovery (contract 6.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingTool {
    /// No tool of any server is shown.
    FailAll,
    /// No tool of that server is shown.
    FailServer,
}

/// A setting that is too small or too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`mcp_tasks.{name}` must be between {least} and {most}")]
pub struct OutOfRange {
    /// Which.
    pub name: &'static str,
    /// The smallest value that is allowed.
    pub least: u32,
    /// The largest one.
    pub most: u32,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            enabled: None,
            poll_interval_seconds: 5,
            lease_seconds: 120,
            max_concurrent_polls: 8,
            max_poll_backoff_seconds: 300,
            input_required_poll_interval_seconds: 60,
            tracking_degraded_after_errors: 3,
            max_result_bytes: 65_536,
            result_preview_max_chars: 2_000,
            max_status_bytes: 64 * 1024 * 1024,
            missing_tool: MissingTool::FailAll,
            per_server: bounds::TASKS_PER_SERVER,
            polls_per_second: bounds::TASK_POLLS_PER_SECOND,
        }
    }
}

impl TaskLimits {
    /// Whether every setting lies within its range.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), OutOfRange> {
        for (name, value, least, most) in [
            ("poll_interval_seconds", self.poll_interval_seconds, 1, 300),
            ("lease_seconds", self.lease_seconds, 5, 3_600),
            ("max_concurrent_polls", self.max_concurrent_polls, 1, 64),
            ("max_poll_backoff_seconds", self.max_poll_backoff_seconds, 1, 3_600),
            ("input_required_poll_interval_seconds", self.input_required_poll_interval_seconds, 5, 3_600),
            ("tracking_degraded_after_errors", self.tracking_degraded_after_errors, 1, 100),
            ("max_result_bytes", self.max_result_bytes, 1_024, 10_485_760),
            ("result_preview_max_chars", self.result_preview_max_chars, 64, 100_000),
            // As large as the smallest result; at most what a process can hold a few of.
            ("max_status_bytes", self.max_status_bytes, 65_536, 1_073_741_824),
            // More than all slots of a replica would be no bound.
            ("per_server", self.per_server, 1, 64),
            ("polls_per_second", self.polls_per_second, 1, 100_000),
        ] {
            if !(least..=most).contains(&value) {
                return Err(OutOfRange { name, least, most });
            }
        }
        Ok(())
    }

    /// [`TaskLimits::poll_interval_seconds`].
    pub fn poll_interval(&self) -> Duration {
        Duration::from_secs(self.poll_interval_seconds.into())
    }

    /// [`TaskLimits::lease_seconds`].
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_seconds.into())
    }

    /// How long a remote may take to answer: half a lease, so that a claim outlives the call it was made for
    /// (durability.md 1.5).
    pub fn call_timeout(&self) -> Duration {
        self.lease() / 2
    }

    /// The wait after the error that follows `earlier` ones in a row (contract 6.5).
    pub fn backoff(&self, earlier: u32) -> Duration {
        let most = Duration::from_secs(self.max_poll_backoff_seconds.into());
        self.poll_interval().saturating_mul(1 << earlier.min(16)).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_table() {
        // Contract 6.1.
        let limits = TaskLimits::default();
        assert_eq!(limits.check(), Ok(()));
        let polls = (limits.poll_interval_seconds, limits.max_concurrent_polls, limits.max_poll_backoff_seconds);
        assert_eq!((polls, limits.lease_seconds), ((5, 8, 300), 120));
        assert_eq!((limits.input_required_poll_interval_seconds, limits.tracking_degraded_after_errors), (60, 3));
        assert_eq!((limits.max_result_bytes, limits.result_preview_max_chars), (65_536, 2_000));
        assert_eq!((limits.enabled, limits.missing_tool), (None, MissingTool::FailAll));
    }

    #[test]
    fn both_ends_of_each_range_are_allowed_and_what_lies_beyond_is_refused_by_name() {
        // Contract 6.1.
        type Field = fn(&mut TaskLimits) -> &mut u32;
        let fields: [(&str, Field, u32, u32); 10] = [
            ("poll_interval_seconds", |l| &mut l.poll_interval_seconds, 1, 300),
            ("lease_seconds", |l| &mut l.lease_seconds, 5, 3_600),
            ("max_concurrent_polls", |l| &mut l.max_concurrent_polls, 1, 64),
            ("max_poll_backoff_seconds", |l| &mut l.max_poll_backoff_seconds, 1, 3_600),
            ("input_required_poll_interval_seconds", |l| &mut l.input_required_poll_interval_seconds, 5, 3_600),
            ("tracking_degraded_after_errors", |l| &mut l.tracking_degraded_after_errors, 1, 100),
            ("max_result_bytes", |l| &mut l.max_result_bytes, 1_024, 10_485_760),
            ("result_preview_max_chars", |l| &mut l.result_preview_max_chars, 64, 100_000),
            ("per_server", |l| &mut l.per_server, 1, 64),
            ("polls_per_second", |l| &mut l.polls_per_second, 1, 100_000),
        ];
        for (name, field, least, most) in fields {
            let with = |value| {
                let mut limits = TaskLimits::default();
                *field(&mut limits) = value;
                limits.check()
            };
            assert_eq!((with(least), with(most)), (Ok(()), Ok(())), "{name}");
            let refused = OutOfRange { name, least, most };
            assert_eq!((with(least - 1), with(most + 1)), (Err(refused), Err(refused)), "{name}");
            assert!(refused.to_string().contains(name));
        }
    }

    #[test]
    fn waits_double_from_the_interval_to_the_longest() {
        // Contract 6.5, error backoff; contract 6.9, 5 to 80 s.
        let limits = TaskLimits::default();
        let waits: Vec<u64> = (0..8).map(|earlier| limits.backoff(earlier).as_secs()).collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300]);
        let capped = TaskLimits { max_poll_backoff_seconds: 30, ..limits };
        assert_eq!((capped.backoff(0).as_secs(), capped.backoff(4).as_secs()), (5, 30));
        assert_eq!(limits.backoff(u32::MAX).as_secs(), 300);
    }

    #[test]
    fn a_claim_outlives_the_call_it_was_made_for() {
        let limits = TaskLimits::default();
        assert!(limits.call_timeout() * 2 <= limits.lease());
    }
}
