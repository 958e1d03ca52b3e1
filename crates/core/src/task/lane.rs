//! Which work is done together: a duty, and one of eight soft shards (architecture.md §10, lanes).
//!
//! A shard only says which replica looks first; correctness rests on claims alone.

use super::id::TaskId;
use super::status::Status;

/// What is to be done for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Duty {
    /// Its submit was begun. Due = whoever began it is gone: the outcome is unknown.
    Submit = 0,
    /// Ask the remote how it is.
    Poll = 1,
    /// Ask the remote to end it.
    Cancel = 2,
    /// Whatever its duty is, alone: it was abandoned so often that it may kill whoever works on it.
    Quarantine = 3,
    /// Bring the remote the answers to its questions.
    Answer = 4,
}

impl Duty {
    /// Every duty.
    pub const ALL: [Self; 5] = [Self::Submit, Self::Poll, Self::Cancel, Self::Quarantine, Self::Answer];

    /// What is to be done for a task in this state, wherever its row waits.
    pub fn of(status: Status, is_cancel_requested: bool, waiting_answers: u32) -> Self {
        match status {
            Status::Intended => Self::Submit,
            _ if is_cancel_requested => Self::Cancel,
            _ if waiting_answers > 0 => Self::Answer,
            _ => Self::Poll,
        }
    }

    /// Its lane for one shard.
    pub fn lane(self, shard: Shard) -> Lane {
        Lane(self as i16 * 256 + i16::from(shard.0))
    }

    /// Its lanes for all shards.
    pub fn lanes(self) -> impl Iterator<Item = Lane> {
        Shard::all().map(move |shard| self.lane(shard))
    }
}

/// A part of all tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shard(u8);

impl Shard {
    /// How many there are.
    pub const COUNT: u8 = 8;

    /// The shard of a task. Ids are random, so any byte spreads them.
    pub fn of(task: TaskId) -> Self {
        Self(task.0[15] % Self::COUNT)
    }

    /// All shards.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }

    /// Its number, from 0.
    pub fn number(self) -> u8 {
        self.0
    }
}

/// The stored number: duty × 256 + shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane(i16);

impl Lane {
    /// The number.
    pub fn number(self) -> i16 {
        self.0
    }

    /// The lane of a stored number.
    pub fn from_number(number: i16) -> Option<Self> {
        Duty::ALL.into_iter().flat_map(Duty::lanes).find(|lane| lane.0 == number)
    }

    /// The duty it is for.
    pub fn duty(self) -> Duty {
        // A lane is only made of a duty.
        Duty::ALL.into_iter().find(|duty| *duty as i16 == self.0 / 256).unwrap_or(Duty::Poll)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_duty_times_256_plus_shard() {
        // architecture.md §10, "only index".
        let task = TaskId([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 13]);
        assert_eq!(Shard::of(task).number(), 5);
        assert_eq!(Duty::Cancel.lane(Shard::of(task)).number(), 2 * 256 + 5);
        for lane in Duty::ALL.into_iter().flat_map(Duty::lanes) {
            assert_eq!(Lane::from_number(lane.number()), Some(lane));
            assert!(lane.duty().lanes().any(|other| other == lane));
        }
        assert_eq!(Lane::from_number(8), None);
    }

    #[test]
    fn a_request_to_cancel_comes_before_answers_and_these_before_polls() {
        // Contract 6.10, effect: after a request, polling stops.
        for (status, cancel, answers, duty) in [
            (Status::Intended, false, 0, Duty::Submit),
            (Status::Submitted, false, 0, Duty::Poll),
            (Status::InputRequired, false, 1, Duty::Answer),
            (Status::InputRequired, true, 1, Duty::Cancel),
        ] {
            assert_eq!(Duty::of(status, cancel, answers), duty);
        }
    }
}
