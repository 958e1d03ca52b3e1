//! What a task may be, and what may follow (contract 6.2; invariant T2: a terminal status never changes).

use serde::{Serialize, Serializer};

/// Where a task stands. The numbers are those of the stored column; from 10 on they are terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// The remote is being asked for it; nobody has heard of it yet (invariant T1).
    Intended = 0,
    /// The remote has accepted it.
    Submitted = 1,
    /// The remote works on it.
    Working = 2,
    /// The remote waits for an answer.
    InputRequired = 3,
    /// It ended well.
    Completed = 10,
    /// It ended badly, or can no longer be followed.
    Failed = 11,
    /// It was cancelled.
    Cancelled = 12,
    /// Nobody can tell whether the remote accepted it.
    Unknown = 13,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 8] = [
        Self::Intended,
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Unknown,
    ];

    /// The number it is stored by.
    pub fn number(self) -> i16 {
        self as i16
    }

    /// The status stored by this number.
    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.number() == number)
    }

    /// The word callers read. An unknown outcome reads `failed`, with [`OUTCOME_UNKNOWN`] beside it, because the
    /// compatible list has six words (architecture.md §2).
    pub fn word(self) -> &'static str {
        match self {
            Self::Intended | Self::Submitted => "submitted",
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed | Self::Unknown => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The `error_code` beside the word; `None` = the word says it all.
    pub fn error_code(self) -> Option<&'static str> {
        (self == Self::Unknown).then_some(OUTCOME_UNKNOWN)
    }

    /// Whether it is final.
    pub fn is_terminal(self) -> bool {
        self.number() >= Self::Completed.number()
    }

    /// Whether the remote is asked how the task is.
    pub fn is_pollable(self) -> bool {
        matches!(self, Self::Submitted | Self::Working | Self::InputRequired)
    }

    /// Whether somebody should be told.
    pub fn is_attention(self) -> bool {
        self == Self::InputRequired || self.is_terminal()
    }

    /// Whether `next` may be written over it.
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Intended => matches!(next, Self::Submitted | Self::Unknown),
            _ if self.is_terminal() => false,
            _ => !matches!(next, Self::Intended),
        }
    }
}

/// The `error_code` of a task of which nobody can tell whether it runs.
pub const OUTCOME_UNKNOWN: &str = "outcome_unknown";

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_the_marks_of_the_table() {
        // Contract 6.2.
        for (status, word, pollable, attention, terminal) in [
            (Status::Submitted, "submitted", true, false, false),
            (Status::Working, "working", true, false, false),
            (Status::InputRequired, "input_required", true, true, false),
            (Status::Completed, "completed", false, true, true),
            (Status::Failed, "failed", false, true, true),
            (Status::Cancelled, "cancelled", false, true, true),
        ] {
            let marks = (status.word(), status.is_pollable(), status.is_attention(), status.is_terminal());
            assert_eq!(marks, (word, pollable, attention, terminal), "{status:?}");
            assert_eq!(status.error_code(), None);
        }
        assert!(!Status::Intended.is_pollable() && !Status::Intended.is_attention());
    }

    #[test]
    fn an_unknown_outcome_is_terminal_and_reads_failed_with_a_code() {
        // architecture.md §2, task outcome `unknown`.
        let unknown = Status::Unknown;
        assert_eq!((unknown.word(), unknown.error_code()), ("failed", Some("outcome_unknown")));
        assert!(unknown.is_terminal() && unknown.is_attention() && !unknown.is_pollable());
    }

    #[test]
    fn a_terminal_status_never_changes() {
        // Contract 6.2, invariant T2.
        for from in Status::ALL {
            for to in Status::ALL {
                assert!(!(from.is_terminal() && from.may_become(to)), "{from:?} {to:?}");
            }
        }
        assert!(Status::InputRequired.may_become(Status::Working), "polling may take a question back");
        assert!(!Status::Working.may_become(Status::Intended));
        assert!(!Status::Intended.may_become(Status::Completed), "a handle comes first");
    }

    #[test]
    fn stored_numbers_are_read_back() {
        for status in Status::ALL {
            assert_eq!(Status::from_number(status.number()), Some(status));
        }
        assert_eq!(Status::from_number(4), None);
    }
}
