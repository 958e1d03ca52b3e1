//! Tasks that live and die with one session of a server, and who may ask about them (architecture.md §10, pinned tasks).
//!
//! A child process that is started anew knows the tasks of the one before only if the server keeps them outside of it.
//! So a pinned task names the process that holds it, by the replica that started it and the epoch of the session, in
//! place of a session id of the remote. When that one is gone, the next one is asked once whether it knows the task: then
//! the task lives there from now on; else it is lost, which is told as that and not as *not found*.

use std::fmt;

use crate::ids::{BootId, Epoch};

/// The error of a task whose session is gone.
pub const LOST: &str =
    "task lost: server restarted, and does not know it any more; submit it again if it is still needed";

/// What a stored pin starts with: no session id of a remote holds a blank.
const PREFIX: &str = "session ";

/// The session that holds a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The replica that opened it.
    pub boot: BootId,
    /// Which of the sessions of its key.
    pub epoch: Epoch,
}

/// Where a pinned task is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Here: the session lives in this replica, or the server can resume it anywhere.
    Here,
    /// In another replica, which lives: it is left to that one.
    Elsewhere,
    /// In no session that is open: it ended, and the task with it unless the server has kept it.
    Gone,
}

impl Pin {
    /// Reads the stored form. `None` = it is the remote's own name of a session.
    pub fn parse(text: &str) -> Option<Self> {
        let (boot, epoch) = text.strip_prefix(PREFIX)?.rsplit_once(' ')?;
        Some(Self { boot: BootId::new(boot), epoch: Epoch(epoch.parse().ok()?) })
    }

    /// Where to ask: `open` is the epoch of the session of the task's key that is open in replica `ours`.
    pub fn place(&self, ours: &BootId, open: Option<Epoch>, is_alive: impl FnOnce(&BootId) -> bool) -> Place {
        if self.boot == *ours {
            return if open == Some(self.epoch) { Place::Here } else { Place::Gone };
        }
        if is_alive(&self.boot) { Place::Elsewhere } else { Place::Gone }
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{} {}", self.boot, self.epoch.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_task_is_asked_about_where_its_session_lives_and_lost_with_it() {
        // architecture.md §10, pinned tasks.
        let pin = Pin { boot: BootId::from("us"), epoch: Epoch(3) };
        let ours = BootId::from("us");
        for (open, place) in [(Some(3), Place::Here), (Some(4), Place::Gone), (None, Place::Gone)] {
            assert_eq!(pin.place(&ours, open.map(Epoch), |_| true), place, "{open:?}");
        }
        let theirs = BootId::from("them");
        assert_eq!(pin.place(&theirs, Some(Epoch(3)), |_| true), Place::Elsewhere);
        assert_eq!(pin.place(&theirs, Some(Epoch(3)), |_| false), Place::Gone);
    }

    #[test]
    fn a_pin_is_read_back_and_a_session_of_a_remote_is_none() {
        let pin = Pin { boot: BootId::from("019ad000-0000-7000-8000-00000000000a"), epoch: Epoch(12) };
        assert_eq!(Pin::parse(&pin.to_string()), Some(pin));
        for other in ["", "s", "session ", "session x", "session x y", "0b1c-3"] {
            assert_eq!(Pin::parse(other), None, "{other}");
        }
    }
}
