//! What is stored, and how a claim is looked at.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use caribou_core::holding::{Held, Token};
use caribou_core::ids::{BootId, Scope};
use caribou_core::notification::{Delivery, Notified, Sink};
use caribou_core::task::{Duty, Event, Fingerprint, Lane, Shard, Snapshot, Status, TaskId};
use caribou_ports::store::{Handle, NewAnswer, StoredEvent, StoredTask, TaskIntent};
use tokio::time::Instant;

use crate::Memory;

/// All tasks, with their work, events, answers and deliveries.
#[derive(Debug)]
pub(in crate::memory) struct Book {
    /// Times are told from here.
    pub(super) began: Instant,
    pub(in crate::memory) tasks: BTreeMap<TaskId, Task>,
    pub(in crate::memory) deliveries: BTreeMap<(TaskId, Sink), OnItsWay>,
}

impl Default for Book {
    fn default() -> Self {
        Self { began: Instant::now(), tasks: BTreeMap::new(), deliveries: BTreeMap::new() }
    }
}

/// One task.
#[derive(Debug)]
pub(in crate::memory) struct Task {
    pub(in crate::memory) intent: TaskIntent,
    pub(super) handle: Option<Handle>,
    pub(super) snapshot: Snapshot,
    pub(super) told: Option<Fingerprint>,
    pub(super) events: Vec<StoredEvent>,
    pub(in crate::memory) told_events: Vec<i64>,
    pub(super) answers: Vec<StoredAnswer>,
    pub(super) is_cancel_requested: bool,
    pub(super) last_poll_error: Option<String>,
    pub(super) last_cancel_error: Option<String>,
    pub(super) last_answer_error: Option<String>,
    pub(super) created: Instant,
    pub(super) updated: Instant,
    pub(super) ended: Option<Instant>,
    /// What is to be done; of an ended task what it was like last.
    pub(super) work: Work,
}

/// An answer to a question.
#[derive(Debug)]
pub(super) struct StoredAnswer {
    pub(super) answer: NewAnswer,
    pub(super) is_waiting: bool,
}

/// The row of work.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) lane: Lane,
    pub(super) due: Instant,
    pub(super) seq: i64,
    pub(super) owner: Option<BootId>,
    pub(super) abandons: u32,
    pub(super) poll_errors: u32,
    pub(super) attempts: u32,
    pub(super) last_polled: Option<Instant>,
}

/// A delivery with its claim.
#[derive(Debug)]
pub(in crate::memory) struct OnItsWay {
    pub(in crate::memory) delivery: Delivery,
    /// `None` = given up.
    pub(in crate::memory) due: Option<Instant>,
    pub(in crate::memory) seq: i64,
    pub(in crate::memory) owner: Option<BootId>,
}

impl Memory {
    /// The tasks, for one commit.
    pub(in crate::memory) fn book(&self) -> MutexGuard<'_, Book> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// A time as callers are told it.
    pub(in crate::memory) fn us(&self, time: Instant) -> i64 {
        i64::try_from(time.duration_since(self.began).as_micros()).unwrap_or(i64::MAX)
    }

    /// The task that this claim holds.
    pub(super) fn claimed(&mut self, task: TaskId, token: &Token) -> Option<&mut Task> {
        let task = self.tasks.get_mut(&task).filter(|task| task.ended.is_none())?;
        let work = &task.work;
        let held = Held { seq: work.seq, owner: work.owner.as_ref(), is_due: work.due <= Instant::now() };
        held.accepts(token).then_some(task)
    }

    /// A task that somebody may see.
    pub(super) fn seen(&mut self, task: TaskId, of: Option<&Scope>) -> Option<&mut Task> {
        let task = self.tasks.get_mut(&task)?;
        let is_theirs = of.is_none_or(|of| *of == task.intent.scope);
        (is_theirs && task.snapshot.status != Status::Intended).then_some(task)
    }

    /// Records an event with what it makes due (invariant T3).
    pub(super) fn tell(&mut self, task: TaskId, event: &Event, sinks: &[Sink]) {
        let (now, began) = (Instant::now(), self.began);
        let Some(stored) = self.tasks.get_mut(&task) else { return };
        let seq = i64::try_from(stored.events.len()).unwrap_or(i64::MAX - 1) + 1;
        let at_us = i64::try_from(now.duration_since(began).as_micros()).unwrap_or(i64::MAX);
        stored.events.push(StoredEvent { seq, status: event.status, body: event.body.clone(), at_us });
        let Some(fingerprint) = event.attention else { return };
        stored.told = Some(fingerprint);
        for sink in sinks {
            let key = (task, *sink);
            match self.deliveries.remove(&key) {
                None => {
                    let delivery = Delivery::first(seq);
                    self.deliveries.insert(key, OnItsWay { delivery, due: Some(now), seq: 0, owner: None });
                }
                Some(OnItsWay { delivery, due, seq: claims, owner }) => {
                    let (delivery, is_due) = delivery.newer(seq);
                    let (due, owner) = if is_due { (Some(now), None) } else { (due, owner) };
                    self.deliveries.insert(key, OnItsWay { delivery, due, seq: claims, owner });
                }
            }
        }
    }

    /// The task for whoever looks at it.
    pub(super) fn shown(&self, task: &Task) -> StoredTask {
        let id = task.intent.task;
        let delivery = Sink::ALL.into_iter().find_map(|sink| self.deliveries.get(&(id, sink)));
        let delivery = delivery.map(|on_its_way| &on_its_way.delivery);
        let us = |time: Option<Instant>| time.map(|time| self.us(time));
        let attempts = if task.is_cancel_requested { task.work.attempts } else { 0 };
        StoredTask {
            task: id,
            scope: task.intent.scope.clone(),
            server: task.intent.server.clone(),
            task_name: task.intent.task_name.clone(),
            driver: task.intent.driver.clone(),
            snapshot: task.snapshot.clone(),
            version: i64::try_from(task.events.len()).unwrap_or(i64::MAX),
            created_us: self.us(task.created),
            updated_us: self.us(task.updated),
            ended_us: us(task.ended),
            last_polled_us: us(task.work.last_polled),
            poll_errors: task.work.poll_errors,
            last_poll_error: task.last_poll_error.clone(),
            is_cancel_requested: task.is_cancel_requested,
            cancel_attempts: attempts,
            last_cancel_error: task.last_cancel_error.clone(),
            waiting_answers: task.waiting(),
            last_answer_error: task.last_answer_error.clone(),
            notified: Notified::of(delivery.map(|delivery| delivery.phase), !task.told_events.is_empty()),
            notification_failures: delivery.map_or(0, |delivery| delivery.failures),
            notification_error: delivery.and_then(|delivery| delivery.error.clone()),
        }
    }
}

impl Task {
    /// The answers that wait.
    pub(super) fn waiting(&self) -> u32 {
        u32::try_from(self.answers.iter().filter(|answer| answer.is_waiting).count()).unwrap_or(u32::MAX)
    }

    /// What is to be done.
    pub(super) fn duty(&self) -> Duty {
        Duty::of(self.snapshot.status, self.is_cancel_requested, self.waiting())
    }

    /// The claim is over: the row is free again and next due in a while. A task that has answered harms nobody.
    pub(super) fn go_on(&mut self, again: Duration) {
        self.work.due = Instant::now() + again;
        self.work.owner = None;
        self.work.abandons = 0;
        if self.work.lane.duty() == Duty::Quarantine {
            self.work.lane = self.duty().lane(Shard::of(self.intent.task));
        }
    }

    /// Something else is to be done now, and whoever works on the task is fenced (invariant C2). What is in quarantine
    /// stays alone.
    pub(super) fn interrupt(&mut self, duty: Duty) {
        if self.work.lane.duty() != Duty::Quarantine {
            self.work.lane = duty.lane(Shard::of(self.intent.task));
        }
        self.work.due = Instant::now();
        self.work.seq += 1;
        self.work.owner = None;
        self.work.attempts = 0;
    }

    /// What the record says of an event by its number.
    pub(in crate::memory) fn event(&self, seq: i64) -> Option<&StoredEvent> {
        self.events.iter().find(|event| event.seq == seq)
    }

    /// The events after a number.
    pub(in crate::memory) fn events_after(&self, seq: i64) -> impl Iterator<Item = &StoredEvent> {
        self.events.iter().filter(move |event| event.seq > seq)
    }
}
