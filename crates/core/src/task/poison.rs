//! Tasks that kill whoever works on them (durability.md 1.5, poison, as architecture.md §10 settles it).
//!
//! A claim that ended neither in a write nor in being given back is an abandon. Whoever abandons one task abandons all
//! it held, so a few prove nothing: from the third on a task is worked on alone, and only then two more end it.

use super::lane::Duty;

/// From so many abandons on a task is worked on alone.
pub const QUARANTINE_AFTER: u32 = 3;

/// So many, of which the last ones alone, and it has failed.
pub const FAIL_AFTER: u32 = 5;

/// The error of such a task.
pub const POISONED: &str = "the task was given up: whoever worked on it ended five times without an answer, the last times working on nothing \
     else";

/// What a claim means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// It is worked on.
    Work,
    /// It is not given out: it goes to quarantine, due now.
    ToQuarantine,
    /// It is given out to be failed.
    Poisoned,
}

/// Decides about a row that is being claimed in a lane of `duty`, with its abandons counted up to now.
pub fn claimed(duty: Duty, abandons: u32) -> Claimed {
    match duty {
        Duty::Quarantine if abandons >= FAIL_AFTER => Claimed::Poisoned,
        Duty::Quarantine => Claimed::Work,
        _ if abandons >= QUARANTINE_AFTER => Claimed::ToQuarantine,
        _ => Claimed::Work,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_given_out_five_times_at_most_and_the_last_two_alone() {
        // Durability.md I10.
        let (mut duty, mut abandons, mut given_out) = (Duty::Poll, 0, Vec::new());
        loop {
            match claimed(duty, abandons) {
                Claimed::Work => {
                    given_out.push(duty);
                    abandons += 1;
                }
                Claimed::ToQuarantine => duty = Duty::Quarantine,
                Claimed::Poisoned => break,
            }
        }
        assert_eq!(given_out, [Duty::Poll, Duty::Poll, Duty::Poll, Duty::Quarantine, Duty::Quarantine]);
    }

    #[test]
    fn many_abandons_outside_quarantine_do_not_fail_a_task() {
        // architecture.md §10, poison.
        assert_eq!(claimed(Duty::Poll, 100), Claimed::ToQuarantine);
        assert_eq!(claimed(Duty::Quarantine, 4), Claimed::Work);
    }
}
