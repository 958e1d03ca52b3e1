//! Watch the events of all tasks, and acknowledge each (contract 6.9).

use caribou_core::bounds::{MAX_TASK_WATCH_WINDOW, MAX_TASK_WATCHERS, TASK_WATCH_WINDOW};
use caribou_core::failure::Code;
use caribou_core::ids::Scope;
use caribou_core::notification::Audience;

use crate::Runtime;
use crate::audit::Entry;
use crate::caller::Caller;
use crate::error::VerbError;
use crate::watch::TaskWatch;

impl Runtime {
    /// Seats a watcher: of the tasks of `user`, or of everybody's if the caller names none and is an admin or an agent.
    /// It has at most `window` events unacknowledged, `TASK_WATCH_WINDOW` when that is zero.
    ///
    /// # Errors
    /// `denied`: it may not be told about that user's tasks. `invalid`: that can be no user, or the window is larger than
    /// `MAX_TASK_WATCH_WINDOW`. `unavailable`: nobody is told over streams here. `busy`: there are as many watchers as
    /// there may be.
    pub async fn watch_tasks(
        &self,
        caller: &Caller,
        user: Option<&str>,
        window: usize,
    ) -> Result<TaskWatch, VerbError> {
        self.audit.around(Entry::new("watch_tasks", caller), async { self.seat(caller, user, window) }).await
    }

    fn seat(&self, caller: &Caller, user: Option<&str>, window: usize) -> Result<TaskWatch, VerbError> {
        Scope::parse(user, None).map_err(|error| VerbError::new(Code::Invalid, error.to_string()))?;
        let audience = match caller.principal.watches(user)? {
            None => Audience::Everybody,
            Some(user) => Audience::Users(vec![user]),
        };
        if window > MAX_TASK_WATCH_WINDOW {
            let detail = format!("a watcher may have at most {MAX_TASK_WATCH_WINDOW} events unacknowledged");
            return Err(VerbError::new(Code::Invalid, detail));
        }
        let watchers = self.task_repository()?.watchers.as_ref().ok_or_else(switched_off)?;
        let window = if window == 0 { TASK_WATCH_WINDOW } else { window };
        watchers.seat(audience, window).ok_or_else(|| {
            VerbError::new(Code::Busy, format!("this replica has {MAX_TASK_WATCHERS} watchers, as many as it may have"))
        })
    }
}

fn switched_off() -> VerbError {
    let detail = "events of tasks are not told over streams here: set `mcp_tasks.notify.stream: true`, then restart";
    VerbError::new(Code::Unavailable, detail)
}
