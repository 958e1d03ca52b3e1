//! Unfinished tasks that live in one session of a server (architecture.md §10): while there is one, the session is
//! neither reaped nor evicted.
//!
//! A task is noted here by whoever asks the server about it, while its call is in flight, and struck off when it has
//! ended. Each is noted for a while only, which ends well after it is to be asked about next: so one that was deleted is
//! forgotten, and nothing has to be rebuilt after a role was started anew, since the next attempt notes it again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use caribou_core::task::TaskId;
use tokio::time::Instant;

/// The tasks of one session, and until when each counts. Bounded by the unfinished tasks that a user may have
/// (invariant B1): a session has one user.
#[derive(Debug, Default)]
pub(super) struct Tenants(Mutex<HashMap<TaskId, Instant>>);

impl Tenants {
    /// Notes a task for so long. What was noted for longer stays so.
    pub(super) fn note(&self, task: TaskId, span: Duration) {
        let until = Instant::now() + span;
        let mut tasks = self.tasks();
        let noted = tasks.entry(task).or_insert(until);
        *noted = until.max(*noted);
    }

    /// Strikes a task off. Whether it was the last one.
    pub(super) fn strike(&self, task: &TaskId) -> bool {
        let mut tasks = self.tasks();
        tasks.remove(task).is_some() && tasks.is_empty()
    }

    /// Whether there are none.
    pub(super) fn are_none(&self) -> bool {
        let (mut tasks, now) = (self.tasks(), Instant::now());
        tasks.retain(|_, until| *until > now);
        tasks.is_empty()
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<TaskId, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: TaskId = TaskId([1; 16]);
    const OTHER: TaskId = TaskId([2; 16]);

    #[tokio::test(start_paused = true)]
    async fn a_session_has_tasks_until_the_last_one_has_ended() {
        // architecture.md §10: never of a session with an unfinished task.
        let tenants = Tenants::default();
        assert!(tenants.are_none());
        for task in [ONE, OTHER, ONE] {
            tenants.note(task, Duration::from_secs(1));
        }
        assert!(!tenants.strike(&ONE) && !tenants.are_none());
        assert!(tenants.strike(&OTHER) && tenants.are_none());
        assert!(!tenants.strike(&OTHER), "once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_nobody_asks_about_any_more_is_forgotten_but_not_before_its_time() {
        let (tenants, second) = (Tenants::default(), Duration::from_secs(1));
        tenants.note(ONE, second * 9);
        tenants.note(ONE, second);
        tokio::time::advance(second * 8).await;
        assert!(!tenants.are_none());
        tokio::time::advance(second).await;
        assert!(tenants.are_none());
    }
}
