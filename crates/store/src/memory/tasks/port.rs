//! The port, each method in one commit.

use std::time::Duration;

use caribou_core::ids::{BootId, Scope};
use caribou_core::task::{Lane, Pin, Status, TaskId};
use caribou_ports::BoxFuture;
use caribou_ports::store::{
    AnswerStored, AttemptFailed, BroughtAnswer, CancelRequested, Change, ClaimTasks, ClaimedTask, FORGET_BATCH, Handle,
    NewAnswer, Noted, PageKey, Recorded, Settled, StoreError, StoredTask, TaskClaim, TaskFilter, TaskIntent, Tasks,
    Unchanged,
};
use tokio::time::Instant;

use super::book::{Book, Task};
use crate::Memory;

type Answered<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

fn done<T: Send + 'static>(answer: T) -> Answered<'static, T> {
    Box::pin(async { Ok(answer) })
}

impl Tasks for Memory {
    fn note_intent(&self, intent: TaskIntent) -> Answered<'_, Noted> {
        done(self.book().note(intent))
    }

    fn withdraw(&self, claim: TaskClaim) -> Answered<'_, Settled> {
        done(self.book().withdraw(&claim))
    }

    fn record(&self, claim: TaskClaim, handle: Handle) -> Answered<'_, Recorded> {
        done(self.book().record(&claim, handle))
    }

    fn mark_unknown(&self, claim: TaskClaim, change: Change) -> Answered<'_, Settled> {
        if change.snapshot.status != Status::Unknown {
            let error = StoreError::Mismatch("an intent that ends otherwise than unknown".to_owned());
            return Box::pin(async { Err(error) });
        }
        done(self.book().apply(&claim, change, Duration::ZERO))
    }

    fn claim_due(&self, wanted: ClaimTasks) -> Answered<'_, Vec<ClaimedTask>> {
        let living = self.living();
        done(self.book().claim(&wanted, &living))
    }

    fn renew(&self, mut claims: Vec<TaskClaim>, lease: Duration) -> Answered<'_, Vec<TaskClaim>> {
        let mut book = self.book();
        claims.retain(|claim| {
            let held = book.claimed(claim.task, &claim.token);
            held.map(|task| task.work.due = Instant::now() + lease).is_none()
        });
        drop(book);
        done(claims)
    }

    fn move_pin(&self, claim: TaskClaim, to: Pin) -> Answered<'_, Settled> {
        let mut book = self.book();
        let handle = book.claimed(claim.task, &claim.token).and_then(|task| task.handle.as_mut());
        let moved = handle.map(|handle| handle.session_id = Some(to.to_string()));
        let settled = if moved.is_some() { Settled::Settled } else { Settled::Fenced };
        drop(book);
        done(settled)
    }

    fn release(&self, claims: Vec<TaskClaim>, again: Duration) -> Answered<'_, ()> {
        let mut book = self.book();
        for claim in claims {
            let Some(task) = book.tasks.get_mut(&claim.task).filter(|task| task.ended.is_none()) else { continue };
            let work = &mut task.work;
            if work.seq == claim.token.seq && work.owner.as_ref() == Some(&claim.token.owner) {
                (work.due, work.owner) = (Instant::now() + again, None);
                let counts = work.lane.duty() != caribou_core::task::Duty::Poll;
                work.attempts = work.attempts.saturating_sub(u32::from(counts));
            }
        }
        drop(book);
        done(())
    }

    fn keep(&self, unchanged: Vec<Unchanged>) -> Answered<'_, Vec<TaskClaim>> {
        let mut book = self.book();
        let mut lost = Vec::new();
        for one in unchanged {
            match book.claimed(one.claim.task, &one.claim.token) {
                Some(task) => {
                    task.work.poll_errors = 0;
                    task.work.last_polled = Some(Instant::now());
                    task.go_on(one.again);
                }
                None => lost.push(one.claim),
            }
        }
        drop(book);
        done(lost)
    }

    fn apply(&self, claim: TaskClaim, change: Change, again: Duration) -> Answered<'_, Settled> {
        done(self.book().apply(&claim, change, again))
    }

    fn put_off(&self, claim: TaskClaim, failed: AttemptFailed) -> Answered<'_, Settled> {
        done(self.book().put_off(&claim, failed))
    }

    fn request_cancel(&self, task: TaskId, of: Option<Scope>) -> Answered<'_, CancelRequested> {
        done(self.book().request_cancel(task, of.as_ref()))
    }

    fn answer(&self, task: TaskId, of: Option<Scope>, answer: NewAnswer) -> Answered<'_, AnswerStored> {
        done(self.book().answer(task, of.as_ref(), answer))
    }

    fn waiting_answers(&self, task: TaskId) -> Answered<'_, Vec<NewAnswer>> {
        let book = self.book();
        let answers = book.tasks.get(&task).map_or(&[][..], |task| &task.answers);
        let waiting = answers.iter().filter(|answer| answer.is_waiting).map(|answer| answer.answer.clone());
        done(waiting.collect())
    }

    fn answered(&self, task: TaskId) -> Answered<'_, Vec<String>> {
        let book = self.book();
        let answers = book.tasks.get(&task).map_or(&[][..], |task| &task.answers);
        done(answers.iter().map(|answer| answer.answer.input_id.clone()).collect())
    }

    fn settle_answers(&self, claim: TaskClaim, brought: Vec<BroughtAnswer>, again: Duration) -> Answered<'_, Settled> {
        done(self.book().settle_answers(&claim, &brought, again))
    }

    fn read_task(&self, task: TaskId, of: Option<Scope>) -> Answered<'_, Option<StoredTask>> {
        let mut book = self.book();
        let is_seen = book.seen(task, of.as_ref()).is_some();
        done(book.tasks.get(&task).filter(|_| is_seen).map(|task| book.shown(task)))
    }

    fn list_tasks(&self, filter: TaskFilter, before: Option<PageKey>, limit: u32) -> Answered<'_, Vec<StoredTask>> {
        let book = self.book();
        let mut found: Vec<StoredTask> = matching(&book, &filter).map(|task| book.shown(task)).collect();
        found.sort_by_key(|task| std::cmp::Reverse((task.created_us, task.task)));
        found.retain(|task| before.is_none_or(|key| (task.created_us, task.task) < (key.created_us, key.task)));
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        for task in &mut found {
            let shown = &mut task.snapshot;
            (shown.result, shown.preview, shown.artifact, shown.input_required) = (None, None, None, None);
            shown.rpc_error = None;
        }
        done(found)
    }

    fn count_tasks(&self, filter: TaskFilter) -> Answered<'_, u64> {
        done(u64::try_from(matching(&self.book(), &filter).count()).unwrap_or(u64::MAX))
    }

    fn next_due(&self, lanes: Vec<Lane>) -> Answered<'_, Option<Duration>> {
        let book = self.book();
        let waiting = book.tasks.values().filter(|task| task.ended.is_none() && lanes.contains(&task.work.lane));
        let next = waiting.map(|task| task.work.due).min();
        done(next.map(|due| due.checked_duration_since(Instant::now()).unwrap_or(Duration::ZERO)))
    }

    fn take_back(&self, dead: BootId, within: Duration) -> Answered<'_, u64> {
        let is_dead = self.is_dead(&dead);
        let mut book = self.book();
        let now = Instant::now();
        let mut taken = 0;
        for task in book.tasks.values_mut().filter(|task| is_dead && task.ended.is_none()) {
            let is_left_to_it = task.pinned_to().as_ref() == Some(&dead);
            let work = &mut task.work;
            let is_held = work.owner.as_ref() == Some(&dead) && work.due <= now + within;
            if work.due > now && (is_held || work.owner.is_none() && is_left_to_it) {
                work.due = now;
                taken += 1;
            }
        }
        drop(book);
        done(taken)
    }

    fn forget_tasks(&self, age: Duration) -> Answered<'_, u64> {
        let mut book = self.book();
        let is_told = |id: TaskId| {
            let left = book.deliveries.iter().filter(|((task, _), _)| *task == id);
            left.into_iter().all(|(_, delivery)| delivery.due.is_none())
        };
        let is_old = |task: &&Task| task.ended.is_some_and(|ended| ended.elapsed() > age);
        let mut old: Vec<(Option<Instant>, TaskId)> = book
            .tasks
            .values()
            .filter(is_old)
            .filter(|task| is_told(task.intent.task))
            .map(|task| (task.ended, task.intent.task))
            .collect();
        old.sort_unstable();
        old.truncate(usize::try_from(FORGET_BATCH).unwrap_or(usize::MAX));
        for (_, id) in &old {
            book.tasks.remove(id);
            book.deliveries.retain(|(task, _), _| task != id);
        }
        drop(book);
        done(u64::try_from(old.len()).unwrap_or(u64::MAX))
    }
}

fn matching<'b>(book: &'b Book, filter: &'b TaskFilter) -> impl Iterator<Item = &'b Task> {
    book.tasks.values().filter(|task| {
        let scope = &task.intent.scope;
        task.snapshot.status != Status::Intended
            && filter.user.as_ref().is_none_or(|user| *user == scope.user)
            && filter.thread.as_ref().is_none_or(|thread| *thread == scope.thread)
            && filter.server.as_ref().is_none_or(|server| *server == task.intent.server)
            && filter.is_active.is_none_or(|is_active| is_active == task.ended.is_none())
    })
}
