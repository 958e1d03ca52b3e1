//! What an attempt brought, from the intent to the end (invariants T1, T2, T3).

use std::time::Duration;

use caribou_core::ids::Scope;
use caribou_core::task::cancel::{Asked, asked};
use caribou_core::task::input::{Answer, Asking, answer};
use caribou_core::task::{Duty, Shard, Snapshot, Status, TaskId};
use caribou_ports::store::{
    AnswerStored, AttemptFailed, BroughtAnswer, CancelRequested, Change, Handle, NewAnswer, Noted, Recorded, Settled,
    TaskClaim, TaskIntent,
};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::book::{Book, StoredAnswer, Task, Work};

impl Book {
    pub(super) fn note(&mut self, intent: TaskIntent) -> Noted {
        if let Some(first) = self.tasks.values().find(|task| task.intent.submit_key == intent.submit_key) {
            return Noted::Existing { task: first.intent.task, status: first.snapshot.status };
        }
        let is_active = |task: &&Task| task.ended.is_none() && task.intent.scope.user == intent.scope.user;
        if self.tasks.values().filter(is_active).count() >= usize::try_from(intent.at_most).unwrap_or(usize::MAX) {
            return Noted::Full;
        }
        let now = Instant::now();
        let token = caribou_core::holding::Token { seq: 1, owner: intent.owner.clone() };
        let claim = TaskClaim { task: intent.task, token };
        let work = Work {
            lane: Duty::Submit.lane(Shard::of(intent.task)),
            due: now + intent.lease,
            seq: 1,
            owner: Some(intent.owner.clone()),
            abandons: 0,
            poll_errors: 0,
            attempts: 0,
            last_polled: None,
        };
        let task = Task {
            handle: None,
            snapshot: Snapshot::bare(Status::Intended),
            told: None,
            events: Vec::new(),
            told_events: Vec::new(),
            answers: Vec::new(),
            is_cancel_requested: false,
            last_poll_error: None,
            last_cancel_error: None,
            last_answer_error: None,
            created: now,
            updated: now,
            ended: None,
            work,
            intent,
        };
        self.tasks.insert(claim.task, task);
        Noted::Intended(claim)
    }

    pub(super) fn withdraw(&mut self, claim: &TaskClaim) -> Settled {
        match self.claimed(claim.task, &claim.token) {
            Some(task) if task.snapshot.status == Status::Intended => {
                self.tasks.remove(&claim.task);
                Settled::Settled
            }
            _ => Settled::Fenced,
        }
    }

    pub(super) fn record(&mut self, claim: &TaskClaim, handle: Handle) -> Recorded {
        let Some(task) = self.claimed(claim.task, &claim.token) else { return Recorded::Fenced };
        if task.snapshot.status != Status::Intended {
            return Recorded::Fenced;
        }
        let (user, server) = (task.intent.scope.user.clone(), task.intent.server.clone());
        let is_same = |task: &Task| {
            let has_it = task.handle.as_ref().is_some_and(|other| other.remote_id == handle.remote_id);
            has_it && task.intent.scope.user == user && task.intent.server == server
        };
        if self.tasks.values().any(is_same) {
            self.tasks.remove(&claim.task);
            return Recorded::Duplicate;
        }
        let (change, again) = (handle.change.clone(), handle.again);
        let Some(task) = self.claimed(claim.task, &claim.token) else { return Recorded::Fenced };
        task.handle = Some(handle);
        task.work.lane = Duty::Poll.lane(Shard::of(claim.task));
        (task.work.attempts, task.work.poll_errors) = (0, 0);
        self.write(claim.task, change, again);
        Recorded::Recorded
    }

    pub(super) fn apply(&mut self, claim: &TaskClaim, change: Change, again: Duration) -> Settled {
        let Some(task) = self.claimed(claim.task, &claim.token) else { return Settled::Fenced };
        let is_unknown = change.snapshot.status == Status::Unknown;
        let polled = if is_unknown { None } else { Some(Instant::now()) };
        task.work.last_polled = polled;
        task.work.poll_errors = 0;
        self.write(claim.task, change, again);
        Settled::Settled
    }

    fn write(&mut self, id: TaskId, change: Change, again: Duration) {
        let now = Instant::now();
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.snapshot = change.snapshot;
        (task.last_poll_error, task.last_cancel_error) = (None, None);
        task.updated = now;
        task.ended = task.snapshot.status.is_terminal().then_some(now);
        task.go_on(again);
        if let Some(event) = &change.event {
            self.tell(id, event, &change.sinks);
        }
    }

    pub(super) fn put_off(&mut self, claim: &TaskClaim, failed: AttemptFailed) -> Settled {
        let Some(task) = self.claimed(claim.task, &claim.token) else { return Settled::Fenced };
        let error = Some(failed.error);
        match failed.duty {
            Duty::Cancel => task.last_cancel_error = error,
            Duty::Answer => task.last_answer_error = error,
            Duty::Submit | Duty::Poll | Duty::Quarantine => {
                task.last_poll_error = error;
                task.work.poll_errors += 1;
            }
        }
        task.updated = Instant::now();
        task.go_on(failed.again);
        if let Some(event) = &failed.event {
            self.tell(claim.task, event, &failed.sinks);
        }
        Settled::Settled
    }

    pub(super) fn request_cancel(&mut self, id: TaskId, of: Option<&Scope>) -> CancelRequested {
        let Some(task) = self.seen(id, of) else { return CancelRequested::NotFound };
        match asked(task.snapshot.status, task.is_cancel_requested) {
            Asked::NotThere => CancelRequested::NotFound,
            Asked::TooLate => CancelRequested::Ended,
            Asked::Already => CancelRequested::Already,
            Asked::Now => {
                task.is_cancel_requested = true;
                task.updated = Instant::now();
                task.interrupt(Duty::Cancel);
                CancelRequested::Requested
            }
        }
    }

    pub(super) fn answer(&mut self, id: TaskId, of: Option<&Scope>, given: NewAnswer) -> AnswerStored {
        let Ok(body) = serde_json::from_str::<Box<RawValue>>(&given.body) else {
            return AnswerStored::Judged(Answer::Invalid("the answer is not JSON".to_owned()));
        };
        let Some(task) = self.seen(id, of) else { return AnswerStored::NotFound };
        let before = task.answers.iter().find(|stored| stored.answer.input_id == given.input_id);
        let judged = answer(
            &Asking {
                status: task.snapshot.status,
                input_required: task.snapshot.input_required.as_deref(),
                is_cancel_requested: task.is_cancel_requested,
                stored: before.map(|stored| &*stored.answer.body),
                count: task.answers.len(),
            },
            &given.input_id,
            &body,
        );
        if judged == Answer::Store {
            let is_claimed = task.work.owner.is_some() && task.work.due > Instant::now();
            let is_being_brought = is_claimed && task.work.lane.duty() == Duty::Answer;
            task.answers.push(StoredAnswer { answer: given, is_waiting: true });
            task.told = None;
            task.updated = Instant::now();
            if !is_being_brought {
                task.interrupt(Duty::Answer);
            }
        }
        AnswerStored::Judged(judged)
    }

    pub(super) fn settle_answers(&mut self, claim: &TaskClaim, brought: &[BroughtAnswer], again: Duration) -> Settled {
        let Some(task) = self.claimed(claim.task, &claim.token) else { return Settled::Fenced };
        for stored in &mut task.answers {
            stored.is_waiting &= brought.iter().all(|one| one.input_id != stored.answer.input_id);
        }
        task.last_answer_error = brought.iter().rev().find_map(|one| one.refused.clone());
        task.updated = Instant::now();
        task.go_on(again);
        task.work.attempts = 0;
        let duty = task.duty();
        task.work.lane = duty.lane(Shard::of(claim.task));
        if duty == Duty::Answer {
            task.work.due = Instant::now();
        }
        Settled::Settled
    }
}
