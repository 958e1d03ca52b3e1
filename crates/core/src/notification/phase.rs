//! How far a delivery is.

use serde::Serialize;

/// How far the delivery of one task's newest event to one sink is. The numbers are those of the stored column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// To be launched, with whatever event is the newest then.
    Pending = 0,
    /// Its launch is reserved, and may have reached the sink.
    Launching = 1,
    /// The sink has accepted it, and its run is looked up until it ends.
    Launched = 2,
    /// Its run is known to have failed; to be launched again.
    Retry = 3,
    /// Given up, until a newer event comes or somebody asks for it.
    DeadLetter = 4,
}

impl Phase {
    /// The number it is stored by.
    pub fn number(self) -> i16 {
        self as i16
    }

    /// The phase stored by this number.
    pub fn from_number(number: i16) -> Option<Self> {
        [Self::Pending, Self::Launching, Self::Launched, Self::Retry, Self::DeadLetter]
            .into_iter()
            .find(|phase| phase.number() == number)
    }

    /// Whether a launch stands behind it whose event stays what it was until that run is known to have failed.
    pub fn is_in_flight(self) -> bool {
        matches!(self, Self::Launching | Self::Launched)
    }
}

/// The word callers read of a task (contract 2.3, `notification_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Notified {
    /// Nothing was to be told yet.
    None,
    /// To be launched.
    Pending,
    /// Being launched.
    Claimed,
    /// To be launched again.
    Retry,
    /// Launched.
    Dispatched,
    /// Its run has succeeded.
    Delivered,
    /// Given up.
    DeadLetter,
}

impl Notified {
    /// The word for a task whose delivery is that far; without one, whether one has ever succeeded decides.
    pub fn of(phase: Option<Phase>, was_delivered: bool) -> Self {
        match phase {
            Some(Phase::Pending) => Self::Pending,
            Some(Phase::Launching) => Self::Claimed,
            Some(Phase::Launched) => Self::Dispatched,
            Some(Phase::Retry) => Self::Retry,
            Some(Phase::DeadLetter) => Self::DeadLetter,
            None if was_delivered => Self::Delivered,
            None => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_the_word_of_the_contract() {
        // Contract 2.3, notification_status.
        let words: Vec<String> = (0..5)
            .map(|number| Notified::of(Phase::from_number(number), false))
            .chain([Notified::of(None, true), Notified::of(None, false)])
            .map(|word| serde_json::to_string(&word).unwrap().replace('"', ""))
            .collect();
        assert_eq!(words, ["pending", "claimed", "dispatched", "retry", "dead_letter", "delivered", "none"]);
        assert_eq!(Phase::from_number(5), None);
    }
}
