//! What names one launch to its sink (contract 6.9, idempotency key).

use std::fmt;

use crate::task::TaskId;

/// Where events go. The numbers are those of the stored column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sink {
    /// A signed webhook.
    Webhook = 1,
    /// Whoever watches over gRPC and acknowledges.
    Stream = 2,
    /// The log.
    Log = 3,
}

impl Sink {
    /// Every sink.
    pub const ALL: [Self; 3] = [Self::Webhook, Self::Stream, Self::Log];

    /// The number it is stored by.
    pub fn number(self) -> i16 {
        self as i16
    }

    /// The sink stored by this number.
    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|sink| sink.number() == number)
    }

    /// Its name in settings, metrics and answers.
    pub fn word(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Stream => "stream",
            Self::Log => "log",
        }
    }
}

/// Names one launch. It stays the same until the run is known to have failed, so that a sink that has seen it answers
/// with the run it has (invariant N1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The task.
    pub task: TaskId,
    /// Which of its events.
    pub seq: i64,
    /// Which try, counted by failed runs.
    pub attempt: u32,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mcp-task:{}:{}:{}", self.task, self.seq, self.attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_task_event_and_attempt() {
        // Contract 6.9, idempotency key.
        let key = Key { task: TaskId([0xab; 16]), seq: 3, attempt: 1 };
        assert_eq!(key.to_string(), format!("mcp-task:mcp-task-{}:3:1", "ab".repeat(16)));
    }

    #[test]
    fn stored_sinks_are_read_back() {
        for sink in Sink::ALL {
            assert_eq!(Sink::from_number(sink.number()), Some(sink));
        }
        assert_eq!(Sink::from_number(0), None);
    }
}
