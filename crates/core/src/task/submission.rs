//! What becomes of a submit, whatever happens to it (contract 6.4; invariant T1).
//!
//! The intent is stored, then the remote is asked once, then its handle is stored, then the caller hears the local
//! name. What broke off in between is never repeated: it is taken back, marked as unknown, or cancelled at the remote.

use serde::Serialize;

use super::id::TaskId;
use super::limits::MAX_REMOTE_ID_CHARS;
use super::parse::Misread;
use super::status::Status;

/// How asking the remote ended, when no handle came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoHandle {
    /// The remote was never asked, or said no.
    Refused,
    /// The remote answered, but with something that is no handle.
    Unreadable,
    /// The remote may have accepted: the connection broke off, or the time was over.
    Ambiguous,
    /// Whoever asked is gone, and so is what it knew: the claim of the intent has expired.
    Abandoned,
}

/// What is done with the intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Nothing was started: it is deleted.
    Withdraw,
    /// It becomes [`Status::Unknown`], and somebody is told.
    MarkUnknown,
}

/// What is done with the intent of a submit that brought no handle. A submit is never repeated by us.
pub fn without_handle(end: NoHandle) -> Intent {
    match end {
        NoHandle::Refused | NoHandle::Unreadable => Intent::Withdraw,
        NoHandle::Ambiguous | NoHandle::Abandoned => Intent::MarkUnknown,
    }
}

/// Why a handle could not be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRecorded {
    /// Another task of this user already follows it.
    Duplicate,
    /// It, or what came with it, does not fit.
    DoesNotFit,
    /// The store did not answer, for as long as [`super::limits::COMPENSATION`].
    Store,
    /// The intent is no longer ours: its claim has expired, or its thread was deleted.
    Fenced,
    /// The caller went away.
    CallerGone,
}

/// What is owed to the remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compensation {
    /// Nothing: what it accepted is followed.
    None,
    /// Its task is cancelled, once and without more ado if that fails; the first error is what the caller hears. A
    /// commit that did land converges by polling.
    CancelRemote,
}

/// What is owed to a remote that accepted what could not be stored.
pub fn compensation(failure: NotRecorded) -> Compensation {
    match failure {
        NotRecorded::Duplicate => Compensation::None,
        NotRecorded::DoesNotFit | NotRecorded::Store | NotRecorded::Fenced | NotRecorded::CallerGone => {
            Compensation::CancelRemote
        }
    }
}

/// Whether a remote's name of a task can be stored.
///
/// # Errors
/// It is blank, too long, or holds a character that no database takes.
pub fn check_remote_id(remote_id: &str) -> Result<(), Misread> {
    let fits = remote_id.chars().count() <= MAX_REMOTE_ID_CHARS && !remote_id.contains('\0');
    if fits && !remote_id.trim().is_empty() {
        return Ok(());
    }
    Err(Misread::Protocol(format!("task_id is empty, has more than {MAX_REMOTE_ID_CHARS} characters or holds a NUL")))
}

/// What a caller hears of a task that was accepted: all of it. The remote's name is never part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Submitted {
    /// The local name.
    pub task_id: TaskId,
    /// The name of its toolset.
    pub task_name: String,
    /// Where it stands.
    pub status: Status,
    /// What a model should know.
    pub message: String,
}

impl Submitted {
    /// The answer for a task that was stored.
    pub fn of(task_id: TaskId, task_name: &str, status: Status) -> Self {
        let message = format!(
            "Background task {task_id} was accepted and is followed to its end; you will be told when it needs input \
             or has ended. Do not submit it again."
        );
        Self { task_id, task_name: task_name.to_owned(), status, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submit_that_may_have_been_accepted_is_marked_unknown_and_never_repeated() {
        // Invariant T1; durability.md 1.5, submit.
        for (end, intent) in [
            (NoHandle::Refused, Intent::Withdraw),
            (NoHandle::Unreadable, Intent::Withdraw),
            (NoHandle::Ambiguous, Intent::MarkUnknown),
            (NoHandle::Abandoned, Intent::MarkUnknown),
        ] {
            assert_eq!(without_handle(end), intent, "{end:?}");
        }
    }

    #[test]
    fn only_a_duplicate_is_not_cancelled_at_the_remote() {
        // Contract 6.4, compensation.
        for (failure, owed) in [
            (NotRecorded::Duplicate, Compensation::None),
            (NotRecorded::DoesNotFit, Compensation::CancelRemote),
            (NotRecorded::Store, Compensation::CancelRemote),
            (NotRecorded::Fenced, Compensation::CancelRemote),
            (NotRecorded::CallerGone, Compensation::CancelRemote),
        ] {
            assert_eq!(compensation(failure), owed, "{failure:?}");
        }
    }

    #[test]
    fn a_name_of_255_characters_fits() {
        // Contract 6.4, step 3.
        assert_eq!(check_remote_id(&"é".repeat(255)), Ok(()));
        for wrong in ["", " ", "a\0b", &"r".repeat(256)] {
            assert!(check_remote_id(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_caller_hears_the_local_name_and_nothing_of_the_remote() {
        // Contract 6.4, step 4.
        let told = serde_json::to_value(Submitted::of(TaskId([7; 16]), "report", Status::Submitted)).unwrap();
        let keys: Vec<&String> = told.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["task_id", "task_name", "status", "message"]);
        assert_eq!((told["task_name"].as_str(), told["status"].as_str()), (Some("report"), Some("submitted")));
    }
}
