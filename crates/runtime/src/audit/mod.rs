//! Who did what, on record: one row for each call and each change, whatever became of it.
//!
//! ```text
//!  verb ──begin──► place in the buffer ──end──► row in the buffer ──► writer ──batch──► store
//! ```
//!
//! A verb takes the place of its row before it does anything, so a row that begins is never lost to a full buffer,
//! and ends it with its outcome; one whose caller went away ends as `cancelled`. Nothing here waits on the way of a
//! call: the [`writer`] stores what is buffered, some hundred rows or a tenth of a second at a time.
//!
//! While the store is away the writer keeps what it has and asks again, and the buffer fills. When it is full,
//! [`OnFull`] says whether further work is refused or goes unrecorded and is counted. A store that took a batch and
//! could not say so is given it again: a row may then stand there twice, with the same request id and time. An orderly
//! stop stores what is buffered within a bound. A crash loses what was not stored: about one batch while the store is
//! well, the buffer while it is away.
//!
//! Rows hold names and outcomes, never arguments, results, headers or secrets (invariant O3); texts are cut and freed
//! of control characters. Buffer and waits are bounded (invariant B1).

mod entry;
mod log;
mod metrics;
mod options;
mod retention;
mod wall_clock;
mod writer;

pub(crate) use entry::Entry;
pub(crate) use log::{AuditLog, Recording};
pub use options::{AuditOptions, OnFull};
pub use wall_clock::wall_clock_ms;
