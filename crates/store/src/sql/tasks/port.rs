//! The port, each method where it is written.

use std::time::Duration;

use caribou_core::ids::{BootId, Scope};
use caribou_core::task::{Lane, Pin, Status, TaskId};
use caribou_ports::BoxFuture;
use caribou_ports::store::{
    AnswerStored, AttemptFailed, BroughtAnswer, CancelRequested, Change, ClaimTasks, ClaimedTask, Handle, NewAnswer,
    Noted, PageKey, Recorded, Settled, StoreError, StoredTask, TaskClaim, TaskFilter, TaskIntent, Tasks, Unchanged,
};

use super::{answers, cancel, claim, intent, keep, list, pin, settle, upkeep};
use crate::sql::SqlStore;

type Answered<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

impl Tasks for SqlStore {
    fn note_intent(&self, noted: TaskIntent) -> Answered<'_, Noted> {
        Box::pin(intent::note(self, noted))
    }

    fn withdraw(&self, claim: TaskClaim) -> Answered<'_, Settled> {
        Box::pin(intent::withdraw(self, claim))
    }

    fn record(&self, claim: TaskClaim, handle: Handle) -> Answered<'_, Recorded> {
        Box::pin(intent::record(self, claim, handle))
    }

    fn mark_unknown(&self, claim: TaskClaim, change: Change) -> Answered<'_, Settled> {
        Box::pin(async move {
            if change.snapshot.status != Status::Unknown {
                return Err(StoreError::Mismatch("an intent that ends otherwise than unknown".to_owned()));
            }
            settle::apply(self, claim, change, Duration::ZERO).await
        })
    }

    fn claim_due(&self, wanted: ClaimTasks) -> Answered<'_, Vec<ClaimedTask>> {
        Box::pin(claim::claim(self, wanted))
    }

    fn renew(&self, claims: Vec<TaskClaim>, lease: Duration) -> Answered<'_, Vec<TaskClaim>> {
        Box::pin(keep::renew(self, claims, lease))
    }

    fn move_pin(&self, claim: TaskClaim, to: Pin) -> Answered<'_, Settled> {
        Box::pin(pin::move_pin(self, claim, to))
    }

    fn release(&self, claims: Vec<TaskClaim>, again: Duration) -> Answered<'_, ()> {
        Box::pin(keep::release(self, claims, again))
    }

    fn keep(&self, unchanged: Vec<Unchanged>) -> Answered<'_, Vec<TaskClaim>> {
        Box::pin(keep::keep(self, unchanged))
    }

    fn apply(&self, claim: TaskClaim, change: Change, again: Duration) -> Answered<'_, Settled> {
        Box::pin(settle::apply(self, claim, change, again))
    }

    fn put_off(&self, claim: TaskClaim, failed: AttemptFailed) -> Answered<'_, Settled> {
        Box::pin(settle::put_off(self, claim, failed))
    }

    fn request_cancel(&self, task: TaskId, of: Option<Scope>) -> Answered<'_, CancelRequested> {
        Box::pin(cancel::request(self, task, of))
    }

    fn answer(&self, task: TaskId, of: Option<Scope>, answer: NewAnswer) -> Answered<'_, AnswerStored> {
        Box::pin(answers::store(self, task, of, answer))
    }

    fn waiting_answers(&self, task: TaskId) -> Answered<'_, Vec<NewAnswer>> {
        Box::pin(answers::waiting(self, task))
    }

    fn answered(&self, task: TaskId) -> Answered<'_, Vec<String>> {
        Box::pin(answers::names(self, task))
    }

    fn settle_answers(&self, claim: TaskClaim, brought: Vec<BroughtAnswer>, again: Duration) -> Answered<'_, Settled> {
        Box::pin(answers::settle(self, claim, brought, again))
    }

    fn read_task(&self, task: TaskId, of: Option<Scope>) -> Answered<'_, Option<StoredTask>> {
        Box::pin(list::one(self, task, of))
    }

    fn list_tasks(&self, filter: TaskFilter, before: Option<PageKey>, limit: u32) -> Answered<'_, Vec<StoredTask>> {
        Box::pin(list::page(self, filter, before, limit))
    }

    fn count_tasks(&self, filter: TaskFilter) -> Answered<'_, u64> {
        Box::pin(list::count(self, filter))
    }

    fn next_due(&self, lanes: Vec<Lane>) -> Answered<'_, Option<Duration>> {
        Box::pin(upkeep::next_due(self, lanes))
    }

    fn take_back(&self, dead: BootId, within: Duration) -> Answered<'_, u64> {
        Box::pin(upkeep::take_back(self, dead, within))
    }

    fn forget_tasks(&self, age: Duration) -> Answered<'_, u64> {
        Box::pin(upkeep::forget(self, age))
    }
}
