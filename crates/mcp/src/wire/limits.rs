//! Bounds of the wire that belong to no setting, with their reasons (invariant B1).

use std::time::Duration;

/// How long a message that nobody waits for (a cancel notice, an answer to a server) may take to be written. A server
/// that does not read for this long will not miss it.
pub(crate) const COURTESY_WRITE: Duration = Duration::from_secs(5);

/// Messages of that kind being written at once in one session; a server that asks faster than it reads is not
/// answered.
pub(crate) const COURTESY_WRITES: usize = 64;

/// How long the pipes of a child that has exited may take to be read to their end. Only a grandchild that holds them
/// open makes it run out.
pub(crate) const DRAIN: Duration = Duration::from_millis(200);

/// How long a child that closed its stdout may take to exit before its calls fail without an exit to show.
pub(crate) const EXIT_AFTER_EOF: Duration = Duration::from_millis(500);

/// How long a child still being started may take to appear after its bring-up was given up, so that it can be ended.
pub(crate) const SPAWN_SETTLE: Duration = Duration::from_secs(5);

/// What the result member of an answer may need around it on the wire: envelope and blanks.
pub(crate) const ENVELOPE_BYTES: usize = 64 * 1024;

/// Questions of a server about its tasks that wait for a person, and tasks whose result is asked for so that it can
/// ask, in one session: as many as calls run at once in one.
pub(crate) const MAX_TASK_QUESTIONS: usize = 64;

/// How long a task that waits for input may take to tell its question. One that takes longer is shown without, until
/// the next poll.
pub(crate) const FIRST_QUESTION: Duration = Duration::from_secs(5);

/// How long others are waited for after the first question: some servers ask several things at once, and a person sees
/// them together then.
pub(crate) const MORE_QUESTIONS: Duration = Duration::from_millis(50);
