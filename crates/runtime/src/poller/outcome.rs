//! What an attempt means for the record (contract 6.5, poll outcomes; 6.10). Pure.

use std::time::Duration;

use caribou_core::config::personal;
use caribou_core::failure::Code;
use caribou_core::notification::Sink;
use caribou_core::task::event::{Facts, event};
use caribou_core::task::limits::MAX_ERROR_CHARS;
use caribou_core::task::parse::Misread;
use caribou_core::task::poll_plan::{after_answer, after_cancel, after_error, is_degraded};
use caribou_core::task::{Duty, LOST, Report, Snapshot, Status, TaskLimits};
use caribou_ports::store::{AttemptFailed, BroughtAnswer, Change, ClaimedTask, NewAnswer};
use caribou_ports::task_driver::DriverError;

/// What is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing new.
    Keep(Duration),
    /// A state; polled again after so long, unless it is the last one.
    Apply(Box<Change>, Duration),
    /// It is tried again.
    PutOff(Box<AttemptFailed>),
    /// Nobody can tell whether the remote accepted it.
    Unknown(Box<Change>),
    /// Answers that need not be brought again.
    Brought(Vec<BroughtAnswer>, Duration),
}

/// One claimed task, and by what it is judged.
#[derive(Clone, Copy)]
pub(super) struct Judge<'a> {
    pub(super) task: &'a ClaimedTask,
    pub(super) limits: &'a TaskLimits,
    pub(super) sinks: &'a [Sink],
}

impl Judge<'_> {
    /// Of a poll.
    pub(super) fn polled(self, answer: Result<Report, DriverError>) -> Outcome {
        let report = match answer {
            Ok(report) => report,
            Err(DriverError::Misread(Misread::Protocol(why))) => return self.ended(Status::Failed, &why),
            // An answer that is too large to be read is too large the next time too (architecture.md §10).
            Err(DriverError::Remote(error)) if error.code == Code::Invalid => {
                return self.ended(Status::Failed, &error.message);
            }
            Err(error) => return self.not_polled(&error),
        };
        let poll_after = report.poll_after_seconds;
        match Snapshot::of(report, self.limits) {
            Ok(snapshot) => {
                let again = after_answer(snapshot.status, poll_after, self.limits).unwrap_or(Duration::ZERO);
                let change = self.change(snapshot);
                let is_new = change.event.is_some() || change.snapshot != self.task.snapshot;
                // What an error left is cleared by a whole write only.
                if is_new || self.task.poll_errors > 0 {
                    return Outcome::Apply(Box::new(change), again);
                }
                Outcome::Keep(again)
            }
            Err(misread) => self.ended(Status::Failed, &misread.to_string()),
        }
    }

    fn not_polled(self, error: &DriverError) -> Outcome {
        if self.is_gone_for_good(error) {
            return self.ended(Status::Failed, &error.to_string());
        }
        let text = cut(&error.to_string());
        let degraded_by = is_degraded(self.task.poll_errors.saturating_add(1), self.limits).then_some(&*text);
        let event = degraded_by.and_then(|_| {
            let facts = Facts {
                task_id: self.task.claim.task,
                task_name: &self.task.task_name,
                snapshot: &self.task.snapshot,
                degraded_by,
            };
            event(self.task.snapshot.status, self.task.told, &facts)
        });
        Outcome::PutOff(Box::new(AttemptFailed {
            duty: Duty::Poll,
            again: after_error(self.task.poll_errors, self.limits),
            event,
            sinks: self.sinks.to_vec(),
            error: text,
        }))
    }

    /// Of the question whether the server has kept a task beyond its restart. One that says nothing sensible about it, time
    /// and again, has not.
    pub(super) fn not_kept(self, error: &DriverError) -> Outcome {
        let tries = self.task.poll_errors.max(self.task.attempts).saturating_add(1);
        match error {
            DriverError::Misread(Misread::Protocol(_)) => self.ended(Status::Failed, LOST),
            error if says_nothing(error) && is_degraded(tries, self.limits) => self.ended(Status::Failed, LOST),
            error => match self.task.duty {
                Duty::Cancel | Duty::Answer => self.not_done(self.task.duty, &error.to_string()),
                Duty::Submit | Duty::Poll | Duty::Quarantine => self.not_polled(error),
            },
        }
    }

    /// Of a cancel: only an end is one, and a breach of the contract is tried again.
    pub(super) fn cancelled(self, answer: Result<Report, DriverError>) -> Outcome {
        match answer {
            Ok(report) if report.status.is_terminal() => match Snapshot::of(report, self.limits) {
                Ok(snapshot) => Outcome::Apply(Box::new(self.change(snapshot)), Duration::ZERO),
                Err(misread) => self.not_done(Duty::Cancel, &misread.to_string()),
            },
            Ok(_) => self.not_done(Duty::Cancel, "the remote has not ended the task yet"),
            Err(error) if self.is_gone_for_good(&error) => self.ended(Status::Failed, &error.to_string()),
            Err(error) => self.not_done(Duty::Cancel, &error.to_string()),
        }
    }

    /// Of bringing `answers`. What the remote will never take is told, and not brought again.
    pub(super) fn answered(self, answers: Vec<NewAnswer>, done: Result<(), DriverError>) -> Outcome {
        let refused = match done {
            Ok(()) => None,
            Err(error @ (DriverError::Misread(Misread::Protocol(_)) | DriverError::NotSupported(_))) => {
                Some(cut(&error.to_string()))
            }
            Err(error) => return self.not_done(Duty::Answer, &error.to_string()),
        };
        let brought = |answer: NewAnswer| BroughtAnswer { input_id: answer.input_id, refused: refused.clone() };
        let brought = answers.into_iter().map(brought).collect();
        Outcome::Brought(brought, self.limits.poll_interval())
    }

    /// The task is over, as far as we are concerned.
    pub(super) fn ended(self, status: Status, why: &str) -> Outcome {
        Outcome::Apply(Box::new(self.change(Snapshot::ended(status, why))), Duration::ZERO)
    }

    /// Whoever submitted it is gone, with what it knew (invariant T1).
    pub(super) fn abandoned(self) -> Outcome {
        let why = "the replica that submitted the task ended before it heard whether the server accepted it";
        Outcome::Unknown(Box::new(self.change(Snapshot::ended(Status::Unknown, why))))
    }

    fn not_done(self, duty: Duty, why: &str) -> Outcome {
        let again = after_cancel(self.task.attempts, self.limits);
        Outcome::PutOff(Box::new(AttemptFailed { duty, error: cut(why), again, event: None, sinks: Vec::new() }))
    }

    /// A personal connection that was edited, disabled or deleted ends its tasks (architecture.md §10, personal
    /// servers); a configured server that is missing may come back.
    fn is_gone_for_good(self, error: &DriverError) -> bool {
        let DriverError::Remote(error) = error else { return false };
        personal::is_runtime_name(&self.task.server) && matches!(error.code, Code::ConfigChanged | Code::NotFound)
    }

    fn change(self, snapshot: Snapshot) -> Change {
        let facts = Facts {
            task_id: self.task.claim.task,
            task_name: &self.task.task_name,
            snapshot: &snapshot,
            degraded_by: None,
        };
        let event = event(self.task.snapshot.status, self.task.told, &facts);
        Change { snapshot, event, sinks: self.sinks.to_vec() }
    }
}

/// Whether the server was asked, and failed at the question.
fn says_nothing(error: &DriverError) -> bool {
    match error {
        DriverError::Misread(_) => true,
        DriverError::Remote(error) => matches!(error.code, Code::SessionEnded | Code::OutcomeUnknown),
        DriverError::NotSupported(_) => false,
    }
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_ERROR_CHARS).collect()
}
