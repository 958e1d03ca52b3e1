//! One delivery, from event to event: what is done next, and what becomes of it (contract 6.9, all tables).

use std::time::Duration;

use super::key::Key;
use super::phase::Phase;
use crate::task::TaskId;
use crate::task::limits::TaskLimits;

/// Failures after which a delivery is given up.
pub const MAX_FAILURES: u32 = 5;

/// The delivery of one task's events to one sink. There is a row as long as something is to be told or was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// How far it is.
    pub phase: Phase,
    /// The newest event there is to tell.
    pub newest: i64,
    /// The event of the last launch.
    pub launched: Option<i64>,
    /// Runs of that event that are known to have failed.
    pub attempt: u32,
    /// Failures of that event that count.
    pub failures: u32,
    /// Launches in a row of which nobody knows whether they arrived. They count for waits only.
    pub unclear: u32,
    /// What the sink calls the run.
    pub run_id: Option<String>,
    /// The last failure.
    pub error: Option<String>,
}

/// What is done with a delivery that was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It has failed too often: it is given up before anything else.
    GiveUp,
    /// The launch of this event is reserved, then made.
    Reserve(i64),
    /// The launch of this event was reserved before; it is made, under the same key and with the same words.
    LaunchAgain(i64),
    /// The run of this event is looked up.
    LookUp(i64),
}

/// What happened to a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It was given up: [`Step::GiveUp`].
    GaveUp,
    /// The sink has taken it, and there is no run to look after.
    Taken,
    /// A run was launched, or had been launched under this key.
    Launched {
        /// What the sink calls it.
        run_id: String,
    },
    /// The thread is busy with another run.
    Busy,
    /// There is no such thread, or never will be an answer.
    Gone(String),
    /// The launch was refused: surely no run was launched.
    Refused(String),
    /// Nobody knows whether a run was launched.
    Unclear(String),
    /// Nobody was there to be told or asked, and nothing was sent.
    NobodyThere,
    /// The run has succeeded.
    Succeeded,
    /// The run has failed, was interrupted, or is not known to the sink.
    Failed(String),
    /// The run goes on.
    Active,
    /// The run could not be looked up.
    NotLookedUp(String),
}

/// What becomes of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    /// All is told: the row goes.
    Done,
    /// It stays.
    Stays {
        /// As what.
        delivery: Delivery,
        /// When it is next looked at; `None` = not before something else happens.
        due: Option<Duration>,
    },
}

impl Delivery {
    /// The first event of a task for a sink.
    pub fn first(seq: i64) -> Self {
        Self {
            phase: Phase::Pending,
            newest: seq,
            launched: None,
            attempt: 0,
            failures: 0,
            unclear: 0,
            run_id: None,
            error: None,
        }
    }

    /// Takes a newer event in, and says whether the delivery is due at once. A launch in flight, and one to be repeated,
    /// keeps its time and its words; anything else starts anew, a given-up one too.
    pub fn newer(self, seq: i64) -> (Self, bool) {
        match self.phase {
            Phase::Launching | Phase::Launched | Phase::Retry => (Self { newest: seq, ..self }, false),
            Phase::Pending | Phase::DeadLetter => (Self::first(seq), true),
        }
    }

    /// What is done next.
    pub fn step(&self) -> Step {
        let launched = self.launched.unwrap_or(self.newest);
        let has_newer = self.launched != Some(self.newest);
        match self.phase {
            // A newer event starts with a clean count, unless the older one is still under way.
            Phase::Pending | Phase::Retry | Phase::DeadLetter if has_newer => Step::Reserve(self.newest),
            _ if self.failures >= MAX_FAILURES => Step::GiveUp,
            Phase::Pending | Phase::Retry | Phase::DeadLetter => Step::Reserve(self.newest),
            Phase::Launching => Step::LaunchAgain(launched),
            Phase::Launched => Step::LookUp(launched),
        }
    }

    /// Reserves the launch of the event `seq`, before anything is sent. `None` = a newer one came, or a launch is under
    /// way: nothing may be sent.
    pub fn reserve(self, seq: i64) -> Option<Self> {
        if self.phase.is_in_flight() || self.phase == Phase::DeadLetter || seq != self.newest {
            return None;
        }
        let is_same = self.launched == Some(seq);
        let (attempt, failures) = if is_same { (self.attempt, self.failures) } else { (0, 0) };
        let phase = Phase::Launching;
        Some(Self { phase, launched: Some(seq), attempt, failures, unclear: 0, run_id: None, ..self })
    }

    /// Names the launch that was reserved last.
    pub fn key(&self, task: TaskId) -> Key {
        Key { task, seq: self.launched.unwrap_or(self.newest), attempt: self.attempt }
    }

    /// What becomes of it. Waits count from the end of what happened.
    pub fn after(self, happened: Happened, limits: &TaskLimits) -> After {
        let (failures, unclear, attempt) = (self.failures, self.unclear, self.attempt);
        let interval = limits.poll_interval();
        match happened {
            Happened::Taken | Happened::Succeeded => self.told(),
            Happened::GaveUp => {
                let error = self.error.clone();
                self.given_up(failures, error)
            }
            Happened::Gone(error) => self.given_up(failures + 1, Some(error)),
            Happened::Launched { run_id } => {
                let next = Self { phase: Phase::Launched, run_id: Some(run_id), unclear: 0, error: None, ..self };
                next.stays(Duration::ZERO)
            }
            Happened::Busy => Self { phase: Phase::Pending, unclear: 0, ..self }.stays(interval),
            Happened::Refused(error) => {
                let next = Self { phase: Phase::Pending, failures: failures + 1, unclear: 0, ..self };
                next.because(error).stays(limits.backoff(failures))
            }
            Happened::Unclear(error) => {
                Self { unclear: unclear + 1, ..self }.because(error).stays(limits.backoff(unclear))
            }
            Happened::Failed(error) => {
                let (attempt, failures_now) = (attempt + 1, failures + 1);
                let next = Self { phase: Phase::Retry, attempt, failures: failures_now, run_id: None, ..self };
                next.because(error).stays(limits.backoff(failures))
            }
            Happened::Active => self.stays(interval),
            // Untouched: a launch that was reserved, and may have been sent before, keeps its key and its words.
            Happened::NobodyThere => self.stays(Duration::ZERO),
            Happened::NotLookedUp(error) => {
                Self { failures: failures + 1, ..self }.because(error).stays(limits.backoff(failures))
            }
        }
    }

    /// Takes a given-up delivery up again, under the key it had; `None` = it was not given up.
    pub fn taken_up(self) -> Option<Self> {
        let is_dead = self.phase == Phase::DeadLetter;
        is_dead.then_some(Self { phase: Phase::Pending, failures: 0, unclear: 0, ..self })
    }

    fn because(self, error: String) -> Self {
        Self { error: Some(error), ..self }
    }

    fn stays(self, due: Duration) -> After {
        After::Stays { delivery: self, due: Some(due) }
    }

    fn has_newer(&self) -> bool {
        self.launched.is_some_and(|launched| launched < self.newest)
    }

    fn told(self) -> After {
        if self.has_newer() { Self::first(self.newest).stays(Duration::ZERO) } else { After::Done }
    }

    fn given_up(self, failures: u32, error: Option<String>) -> After {
        if self.has_newer() {
            return Self::first(self.newest).stays(Duration::ZERO);
        }
        let delivery = Self { phase: Phase::DeadLetter, failures, run_id: None, error, ..self };
        After::Stays { delivery, due: None }
    }
}

#[cfg(test)]
#[path = "delivery/tests.rs"]
mod tests;
