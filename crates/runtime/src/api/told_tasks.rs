//! Tell a client that listens how its tasks go on (mcp.md §9.1, §9.2, notifications).
//!
//! The record is read again on a timer: whichever replica follows a task, what becomes of it is seen here, and told once.
//! What is told is how a task stands; of two changes between two looks only the second one is. A task that has ended is
//! not looked at any more. Bounded in tasks of a listener, and in listeners (invariant B1).

use std::collections::{BTreeMap, VecDeque};

use caribou_core::bounds::TASK_EVENTS_LOOK;
use caribou_core::era::Era;
use caribou_core::failure::Code;
use caribou_core::task::TaskId;
use caribou_core::task::client_view::Word;
use caribou_ports::store::TaskFilter;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until};

use super::client_tasks::{ClientTask, TaskReach};
use super::read_tasks::unread;
use crate::Runtime;
use crate::caller::Caller;
use crate::error::VerbError;

/// Tasks that one listener is told of: more than a client has under way.
const MOST: u32 = 32;

/// What one client is told of its tasks. Nothing, before it follows any.
pub struct ToldTasks {
    runtime: Runtime,
    caller: Caller,
    reach: TaskReach,
    era: Era,
    /// What was told last of each; `None` = it has ended.
    known: BTreeMap<TaskId, Option<Mark>>,
    /// Seen, and not told yet.
    waiting: VecDeque<ClientTask>,
    due: Instant,
    /// Held while there is something to look at.
    place: Option<OwnedSemaphorePermit>,
}

/// Two states of a task that a client can tell apart have different ones.
#[derive(PartialEq, Eq)]
struct Mark {
    word: Word,
    version: i64,
    is_cancel_requested: bool,
    open: Vec<String>,
}

impl ClientTask {
    fn mark(&self, era: Era) -> Mark {
        let view = self.view(era);
        let open = view.questions.into_iter().map(|question| question.name).collect();
        let (version, is_cancel_requested) = (self.stored.version, self.stored.is_cancel_requested);
        Mark { word: view.word, version, is_cancel_requested, open }
    }
}

impl Runtime {
    /// Tells a client of `era` about tasks within `reach`.
    pub fn told_tasks(&self, caller: &Caller, reach: TaskReach, era: Era) -> ToldTasks {
        ToldTasks {
            runtime: self.clone(),
            caller: caller.clone(),
            reach,
            era,
            known: BTreeMap::new(),
            waiting: VecDeque::new(),
            due: Instant::now(),
            place: None,
        }
    }
}

impl ToldTasks {
    /// Follows these tasks, and tells at once how each stands. Those that are followed: none that is not within reach, and
    /// none at all where as many listeners follow tasks as may.
    ///
    /// # Errors
    /// `unavailable`: the store cannot be asked.
    pub async fn follow(&mut self, names: &[String]) -> Result<Vec<String>, VerbError> {
        if names.is_empty() || !self.takes_place() {
            return Ok(Vec::new());
        }
        let mut followed = Vec::new();
        for name in names.iter().take(usize::try_from(MOST).unwrap_or_default()) {
            match self.runtime.client_task(&self.caller, &self.reach, name).await {
                Ok(task) => {
                    followed.push(name.clone());
                    self.tell(task);
                }
                Err(error) if error.code == Code::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        self.leave_if_idle();
        Ok(followed)
    }

    /// Follows the newest tasks within reach, and tells of those that it did not know if they have gone on already.
    /// `is_first` = the client knows how they stand. What cannot be looked up is not told: nobody waits for it.
    pub async fn follow_newest(&mut self, is_first: bool) {
        if !self.runtime.follows_tasks() || !self.takes_place() {
            return;
        }
        if let Err(error) = self.look_for_new(is_first).await {
            tracing::debug!("the tasks of a client cannot be looked up now: {error}");
        }
        self.leave_if_idle();
    }

    async fn look_for_new(&mut self, is_first: bool) -> Result<(), VerbError> {
        self.caller.principal.acts_for(Some(self.reach.user.as_str()))?;
        let TaskReach { user, thread, server } = self.reach.clone();
        let filter = TaskFilter { user: Some(user), thread, server, is_active: None };
        let newest = self.runtime.task_repository()?.store.list_tasks(filter, None, MOST).await.map_err(unread)?;
        self.known.retain(|known, _| newest.iter().any(|task| task.task == *known));
        for listed in newest {
            if self.known.contains_key(&listed.task) {
                continue;
            }
            if is_first && listed.snapshot.status.is_terminal() {
                self.known.insert(listed.task, None);
                continue;
            }
            let task = self.runtime.client_task(&self.caller, &self.reach, &listed.task.to_string()).await?;
            if is_first || task.view(self.era).word == Word::Working {
                self.note(&task);
            } else {
                self.tell(task);
            }
        }
        Ok(())
    }

    /// The next task that is told of, as it stands; waits for ever while none is followed. May be dropped and asked again.
    pub async fn next(&mut self) -> ClientTask {
        loop {
            if let Some(task) = self.waiting.pop_front() {
                return task;
            }
            if self.place.is_none() {
                std::future::pending::<()>().await;
            }
            sleep_until(self.due).await;
            self.look().await;
        }
    }

    /// Looks at those that have not ended.
    async fn look(&mut self) {
        let going_on = self.known.iter().filter(|(_, mark)| mark.is_some());
        let going_on: Vec<TaskId> = going_on.map(|(task, _)| *task).collect();
        for task in going_on {
            match self.runtime.client_task(&self.caller, &self.reach, &task.to_string()).await {
                Ok(found) if self.known.get(&task) == Some(&Some(found.mark(self.era))) => {}
                Ok(found) => self.tell(found),
                Err(error) if error.code == Code::NotFound => drop(self.known.remove(&task)),
                // It is looked again.
                Err(_) => break,
            }
        }
        self.due = Instant::now() + TASK_EVENTS_LOOK;
        self.leave_if_idle();
    }

    fn tell(&mut self, task: ClientTask) {
        self.note(&task);
        self.waiting.push_back(task);
    }

    fn note(&mut self, task: &ClientTask) {
        let mark = task.mark(self.era);
        self.known.insert(task.stored.task, Some(mark).filter(|mark| !mark.word.is_terminal()));
    }

    fn takes_place(&mut self) -> bool {
        if self.place.is_none() {
            let streams = self.runtime.task_repository().ok().map(|road| road.streams.clone());
            self.place = streams.and_then(|streams| streams.try_acquire_owned().ok());
        }
        self.place.is_some()
    }

    fn leave_if_idle(&mut self) {
        if self.known.values().all(Option::is_none) {
            self.place = None;
        }
    }
}
