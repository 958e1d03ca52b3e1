//! The document of servers where it is kept in the store: every state it had, the last of which counts.
//!
//! A revision is written whole, once, under the next number, in one commit with the generations that it moves. So each
//! replica sees one revision whole, and nobody writes over a revision that it has not read.

use std::fmt;
use std::sync::Arc;

use caribou_core::reset::{ResetGeneration, ResetScope};

use super::StoreError;
use crate::BoxFuture;
use crate::config_source::ConfigSourceError;

/// The revisions.
pub trait ConfigRevisions: Send + Sync + 'static {
    /// The last one, and the generation of the document that it is in force under, as of one moment; `None` = there is
    /// none.
    fn last_revision(&self) -> BoxFuture<'_, Result<Option<(StoredRevision, ResetGeneration)>, StoreError>>;

    /// The one of this number; `None` = there never was, or it is not kept any more.
    fn find_revision(&self, number: i64) -> BoxFuture<'_, Result<Option<StoredRevision>, StoreError>>;

    /// Shows the last revision to `revise` and writes what it answers with under the next number, while nobody else can
    /// write, and moves the generation of the document and those it names. The oldest of more than
    /// [`caribou_core::reset::MAX_REVISIONS`] are deleted.
    fn write_revision(&self, author: Arc<str>, revise: Revise) -> BoxFuture<'_, Result<Revised, StoreError>>;

    /// Those before `before`, the last first, at most `limit`.
    fn list_revisions(&self, before: Option<i64>, limit: u32) -> BoxFuture<'_, Result<Vec<RevisionHead>, StoreError>>;
}

/// Makes the next revision from the last one. Runs inside the store's transaction, so it must be brief.
pub type Revise = Box<dyn FnOnce(Option<&StoredRevision>) -> Revising + Send>;

/// What becomes of a revision.
#[derive(Debug)]
pub enum Revising {
    /// There is to be a next one.
    Write(NextRevision),
    /// The last one stays.
    Keep,
    /// Nothing is written, for this reason.
    Refuse(ConfigSourceError),
}

/// A revision to be.
#[derive(Clone, PartialEq, Eq)]
pub struct NextRevision {
    /// The document.
    pub text: Vec<u8>,
    /// What it moves beside the generation of the document.
    pub scopes: Vec<ResetScope>,
}

impl fmt::Debug for NextRevision {
    /// Leaves the bytes out: they hold secrets (invariant O3).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextRevision").field("scopes", &self.scopes).finish_non_exhaustive()
    }
}

/// What became of it.
#[derive(Debug)]
pub enum Revised {
    /// It was written under this number. These generations are in force with it.
    Written(i64, Vec<(ResetScope, ResetGeneration)>),
    /// The last one stays.
    Kept,
    /// Nothing was written.
    Refused(ConfigSourceError),
}

/// A revision as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredRevision {
    /// Counts up from 1.
    pub number: i64,
    /// The document.
    pub text: Vec<u8>,
}

impl fmt::Debug for StoredRevision {
    /// Leaves the bytes out: they hold secrets (invariant O3).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredRevision").field("number", &self.number).finish_non_exhaustive()
    }
}

/// What is told of a revision without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionHead {
    /// Its number.
    pub number: i64,
    /// Who wrote it: the id of a principal, or `import`.
    pub author: Arc<str>,
    /// When, in milliseconds of the Unix epoch by the store's clock.
    pub at_ms: i64,
    /// The size of its text in bytes.
    pub bytes: i64,
}
