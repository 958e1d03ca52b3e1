//! What becomes of one task, as the arguments of its submit say.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The arguments of `job_submit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Which task: its business name, submitted once.
    pub n: u64,
    /// How long after its submit it has ended. Milliseconds.
    pub done_after_ms: u64,
    /// How it ends, if nobody cancels it before.
    #[serde(default)]
    pub ends: Ends,
    /// Whether it asks a question at half its time, and goes on only when it is answered.
    #[serde(default)]
    pub asks: bool,
}

/// How a task ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// With a result that names it.
    #[default]
    Completed,
    /// With an error.
    Failed,
    /// Because it was cancelled; planned, it ends so by itself.
    Cancelled,
}

impl Ends {
    /// The word of the protocol, which is also ours.
    pub fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Plan {
    /// One that is completed after so long.
    pub fn done_after(n: u64, after: Duration) -> Self {
        let done_after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        Self { n, done_after_ms, ends: Ends::Completed, asks: false }
    }

    /// The arguments of the submit.
    pub fn arguments(&self) -> Value {
        serde_json::to_value(self).expect("a plan is JSON")
    }

    pub(super) fn done_after_submit(&self) -> Duration {
        Duration::from_millis(self.done_after_ms)
    }
}
