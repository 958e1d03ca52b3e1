//! Follow the events of one task until it has ended.
//!
//! The record is read again on a timer: an event is told by whichever replica is asked, and none is missed or told twice,
//! since each is asked for by its number. Followers are bounded in number and in age (invariant B1); whoever comes back
//! with the number of the last event misses nothing.

use std::collections::VecDeque;

use caribou_core::bounds::{MAX_TASK_EVENTS, TASK_EVENTS_LOOK, TASK_STREAM_AGE};
use caribou_core::failure::Code;
use caribou_core::ids::Scope;
use caribou_ports::store::StoredEvent;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep};

use crate::Runtime;
use crate::caller::Caller;
use crate::error::VerbError;

/// The events of one task, in order.
pub struct FollowedTask {
    runtime: Runtime,
    caller: Caller,
    scope: Scope,
    task: String,
    /// The number of the last event that was read.
    after: i64,
    /// Read, and not told yet.
    waiting: VecDeque<StoredEvent>,
    /// Whether nothing follows what is waiting.
    has_ended: bool,
    until: Instant,
    /// Held while it lives.
    _place: OwnedSemaphorePermit,
}

impl Runtime {
    /// The events of a task of `scope` after the one of number `after`, those that come included. `None` = none can
    /// come: it has ended, and all of them were told.
    ///
    /// # Errors
    /// As [`Runtime::read_task`]. `busy`: as many tasks are followed at this replica as may be.
    pub async fn follow_task(
        &self,
        caller: &Caller,
        scope: &Scope,
        task: &str,
        after: i64,
    ) -> Result<Option<FollowedTask>, VerbError> {
        let full = |_| VerbError::new(Code::Busy, "too many event streams are open on this replica");
        let place = self.task_repository()?.streams.clone().try_acquire_owned().map_err(full)?;
        let mut followed = FollowedTask {
            runtime: self.clone(),
            caller: caller.clone(),
            scope: scope.clone(),
            task: task.to_owned(),
            after,
            waiting: VecDeque::new(),
            has_ended: false,
            until: Instant::now() + TASK_STREAM_AGE,
            _place: place,
        };
        followed.read().await?;
        let is_over = followed.waiting.is_empty() && followed.is_over().await?;
        Ok((!is_over).then_some(followed))
    }
}

impl FollowedTask {
    /// The next event; `None` = the task has ended, or this has lasted as long as it may. An error is the last. Dropped,
    /// it is asked for again without losing any.
    pub async fn next(&mut self) -> Option<Result<StoredEvent, VerbError>> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(Ok(event));
            }
            if self.has_ended || Instant::now() >= self.until {
                return None;
            }
            sleep(TASK_EVENTS_LOOK).await;
            if let Err(error) = self.read().await {
                self.has_ended = true;
                return Some(Err(error));
            }
        }
    }

    /// Reads what came since.
    async fn read(&mut self) -> Result<(), VerbError> {
        let Self { runtime, caller, scope, task, after, .. } = self;
        let events = runtime.task_events(caller, scope, task, *after, MAX_TASK_EVENTS).await?;
        if let Some(last) = events.last() {
            self.after = last.seq;
            self.has_ended = last.status.is_terminal();
        }
        self.waiting.extend(events);
        Ok(())
    }

    /// Whether the task has ended with the last event that was seen.
    async fn is_over(&self) -> Result<bool, VerbError> {
        let task = self.runtime.read_task(&self.caller, &self.scope, &self.task).await?;
        Ok(task.snapshot.status.is_terminal() && task.version <= self.after)
    }
}
