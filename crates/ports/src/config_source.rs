//! Where the document of servers comes from and how it is replaced (contract 1.11, 5.4).
//!
//! Owns the need: bytes in, bytes out, one writer at a time. What the bytes mean and what an edit does to them is
//! `caribou-core`'s. Every outcome of a write is told apart; only `Unknown` leaves open what is stored. No error and
//! no debug output holds a part of the document (O3), and every wait inside has a deadline (B1).

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use caribou_core::config::edit::EditRefusal;
use caribou_core::config::{ETag, IfMatch};
use caribou_core::failure::{Class, Code};
use caribou_core::reset::{ResetGeneration, ResetScope};

use crate::BoxFuture;
use crate::store::RevisionHead;

/// One document that people and programs edit.
pub trait ConfigSource: Send + Sync + 'static {
    /// Whether the content may differ from what the last `load` read. One look at the file's identity while nothing
    /// moved, its content only when that cannot tell; fit to be called before every look-up. A document that vanished
    /// is no change (contract 5.4).
    fn has_changed(&self) -> bool;

    /// Reads the document; `None` while none is configured. What it read is what `has_changed` compares with.
    fn load(&self) -> BoxFuture<'static, Result<Option<ConfigText>, ConfigSourceError>>;

    /// Reads, edits and replaces the document as one unit that no other writer gets between and that runs to its end
    /// even when the future is dropped, once it was polled. Only while the condition holds for the stored document. An
    /// absent document reads as no bytes and is created; one that is there and empty is `Unreadable`. What it wrote
    /// counts as loaded.
    fn replace(&self, condition: IfMatch, edit: Edit) -> BoxFuture<'static, Result<ConfigText, ConfigSourceError>>;

    /// The same, on record as done by `author` where there is a record.
    fn replace_as(
        &self,
        author: Arc<str>,
        condition: IfMatch,
        edit: Edit,
    ) -> BoxFuture<'static, Result<ConfigText, ConfigSourceError>> {
        drop(author);
        self.replace(condition, edit)
    }

    /// The generations that changes of ours have put in force for all replicas since this was asked last.
    fn take_moved(&self) -> Vec<(ResetScope, ResetGeneration)> {
        Vec::new()
    }

    /// The states it had before `before`, the last first, at most `limit`; `None` = they are not kept.
    fn history(
        &self,
        before: Option<i64>,
        limit: u32,
    ) -> BoxFuture<'static, Result<Option<Vec<RevisionHead>>, ConfigSourceError>> {
        let _ = (before, limit);
        Box::pin(async { Ok(None) })
    }

    /// The state of this number; `None` = it is not kept.
    fn revision(&self, number: i64) -> BoxFuture<'static, Result<Option<ConfigText>, ConfigSourceError>> {
        let _ = number;
        Box::pin(async { Ok(None) })
    }

    /// Resolves when the document may have changed. A hint: callers look for themselves as well.
    fn changed(&self) -> BoxFuture<'static, ()>;

    /// The last reset published to everybody who follows this document, by whomever; a new one counts as a change for
    /// `has_changed` until the next `load`. `None` = none was, or there is nobody else to hear of one.
    fn reset_mark(&self) -> Option<ResetMark> {
        None
    }

    /// Tells everybody who follows this document to forget what they opened and found (contract 5.7). False when there
    /// is no place where they would look.
    fn publish_reset(&self) -> BoxFuture<'static, Result<bool, ConfigSourceError>> {
        Box::pin(async { Ok(false) })
    }
}

/// Looks up one variable of the environment; handed in, so that nothing reads global state.
pub type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Tells one reset from another. Compared for equality only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResetMark(pub Vec<u8>);

/// Makes the new document from the stored one.
pub type Edit = Box<dyn FnOnce(&[u8]) -> Result<Vec<u8>, Refused> + Send>;

/// A document as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigText {
    /// Where it stands, absolute; for messages and for relative paths in it.
    pub file: PathBuf,
    /// Its bytes.
    pub text: Vec<u8>,
    /// Its entity tag.
    pub etag: ETag,
}

impl fmt::Debug for ConfigText {
    /// Leaves the bytes out: they hold secrets (invariant O3).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigText").field("file", &self.file).field("etag", &self.etag).finish_non_exhaustive()
    }
}

/// Why an edit was not made. Holds no value of the document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Refused {
    /// The word to branch on.
    pub code: Code,
    /// What is wrong, where, and how to mend it.
    pub detail: String,
}

impl From<EditRefusal> for Refused {
    fn from(refusal: EditRefusal) -> Self {
        Self { code: refusal.code(), detail: refusal.to_string() }
    }
}

/// Why the document was not read or replaced. Names the file and the reason, never its content.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConfigSourceError {
    /// The edit itself said no; nothing was written.
    #[error("{0}")]
    Refused(Refused),
    /// Somebody else wrote first; the stored document has this tag now.
    #[error("the document was changed in between; its tag is {etag} now")]
    Stale {
        /// The tag now.
        etag: ETag,
    },
    /// The file or its folder cannot be written.
    #[error("{file} cannot be written: {reason}; make it writable, or change it where it comes from")]
    ReadOnly {
        /// The file.
        file: String,
        /// What the system said.
        reason: String,
    },
    /// The file cannot be read; nothing was written.
    #[error("{file} cannot be read: {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// What the system said.
        reason: String,
    },
    /// The write failed before anything changed: the stored document is what it was.
    #[error("{file} was not written: {reason}")]
    NotWritten {
        /// The file.
        file: String,
        /// What the system said, or who was waited for too long.
        reason: String,
    },
    /// The write failed midway; whether the new document stands is not known.
    #[error("{file} may or may not have been written: {reason}; look at it before you try again")]
    Unknown {
        /// The file.
        file: String,
        /// What the system said.
        reason: String,
    },
}

impl ConfigSourceError {
    /// What may be done about it.
    pub fn class(&self) -> Class {
        match self {
            Self::Refused(refused) => refused.code.class(),
            Self::Stale { .. } | Self::ReadOnly { .. } => Class::Conflict,
            Self::Unreadable { .. } => Class::Invalid,
            Self::NotWritten { .. } => Class::Retry,
            Self::Unknown { .. } => Class::Unknown,
        }
    }
}
