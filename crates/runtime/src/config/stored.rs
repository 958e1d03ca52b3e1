//! The document of servers where the store keeps it, for all replicas (contract 1.11, 5.9; architecture.md §2).
//!
//! Owns which generations a revision moves: that of the document always, and that of a server whose sessions it ends.
//! Another replica may read only the revision after this one, in which the server stands as it stood before; what it
//! opened under that is out of date all the same (contract 5.8). Who heard of a generation reads the document anew, so
//! nothing is polled here.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use caribou_core::config::{self, Document, ETag, IfMatch, MAX_DOCUMENT_BYTES, ServerEntry, Source, Touch, touch};
use caribou_core::failure::{Class, Code};
use caribou_core::reset::{ResetGeneration, ResetScope};
use caribou_ports::BoxFuture;
use caribou_ports::config_source::{ConfigSource, ConfigSourceError, ConfigText, Edit, Refused, Variables};
use caribou_ports::store::{
    ConfigRevisions, NextRevision, Revised, Revising, RevisionHead, StoreError, StoredRevision,
};

/// What the document is called in messages, in the folder that relative paths in it start at.
const NAME: &str = "the configuration in the database";

/// Who wrote what no caller did.
const IMPORT: &str = "import";

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The document in the store, followed and replaced. Clones are the same.
#[derive(Clone)]
pub struct StoredConfig(Arc<Kept>);

struct Kept {
    store: Arc<dyn ConfigRevisions>,
    variables: Variables,
    /// Where it would stand, absolute.
    place: PathBuf,
    /// What our own revisions moved, until somebody asks: by one revision at a time.
    moved: Mutex<Vec<(ResetScope, ResetGeneration)>>,
}

impl fmt::Debug for StoredConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredConfig").field("place", &self.0.place).finish_non_exhaustive()
    }
}

impl StoredConfig {
    /// The document that `store` keeps. Relative paths in it start at `folder`, an absolute path.
    pub fn new(store: Arc<dyn ConfigRevisions>, folder: &Path, variables: Variables) -> Self {
        Self(Arc::new(Kept { store, variables, place: folder.join(NAME), moved: Mutex::default() }))
    }

    /// Where it would stand.
    pub fn place(&self) -> PathBuf {
        self.0.place.clone()
    }

    /// Makes `text` its first revision, if it has none. Whether it had none.
    ///
    /// # Errors
    /// The store cannot be asked, or nobody knows whether it is stored.
    pub async fn import(&self, text: Vec<u8>) -> Result<bool, ConfigSourceError> {
        let first = move |last: Option<&StoredRevision>| match last {
            Some(_) => Revising::Keep,
            None => Revising::Write(NextRevision { text: without_mark(text), scopes: Vec::new() }),
        };
        let revised = self.0.store.write_revision(IMPORT.into(), Box::new(first)).await;
        match revised.map_err(|error| self.0.not_written(&error))? {
            Revised::Written(..) => Ok(true),
            Revised::Kept => Ok(false),
            Revised::Refused(why) => Err(why),
        }
    }
}

impl ConfigSource for StoredConfig {
    /// Whoever hears of a generation knows better.
    fn has_changed(&self) -> bool {
        false
    }

    fn load(&self) -> BoxFuture<'static, Result<Option<ConfigText>, ConfigSourceError>> {
        let kept = self.0.clone();
        Box::pin(async move {
            let last = kept.store.last_revision().await.map_err(|error| kept.unreadable(&error))?;
            Ok(last.map(|(revision, _)| kept.text(revision.number, revision.text)))
        })
    }

    fn replace(&self, condition: IfMatch, edit: Edit) -> BoxFuture<'static, Result<ConfigText, ConfigSourceError>> {
        self.replace_as("local".into(), condition, edit)
    }

    fn replace_as(
        &self,
        author: Arc<str>,
        condition: IfMatch,
        edit: Edit,
    ) -> BoxFuture<'static, Result<ConfigText, ConfigSourceError>> {
        let kept = self.0.clone();
        Box::pin(async move {
            let writing = kept.clone();
            // In a task of its own, which runs to its end whoever stops waiting.
            let written = tokio::spawn(async move { writing.replace(author, condition, edit).await }).await;
            written.unwrap_or_else(|_| {
                let (file, reason) = (kept.name(), "the replica is stopping".to_owned());
                Err(ConfigSourceError::Unknown { file, reason })
            })
        })
    }

    fn take_moved(&self) -> Vec<(ResetScope, ResetGeneration)> {
        std::mem::take(&mut *self.0.moved.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn history(
        &self,
        before: Option<i64>,
        limit: u32,
    ) -> BoxFuture<'static, Result<Option<Vec<RevisionHead>>, ConfigSourceError>> {
        let kept = self.0.clone();
        Box::pin(async move {
            let listed = kept.store.list_revisions(before, limit).await;
            listed.map(Some).map_err(|error| kept.unreadable(&error))
        })
    }

    fn revision(&self, number: i64) -> BoxFuture<'static, Result<Option<ConfigText>, ConfigSourceError>> {
        let kept = self.0.clone();
        Box::pin(async move {
            let found = kept.store.find_revision(number).await.map_err(|error| kept.unreadable(&error))?;
            Ok(found.map(|revision| kept.text(revision.number, revision.text)))
        })
    }

    fn changed(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

impl Kept {
    async fn replace(
        self: Arc<Self>,
        author: Arc<str>,
        condition: IfMatch,
        edit: Edit,
    ) -> Result<ConfigText, ConfigSourceError> {
        let result = Arc::new(Mutex::new(None));
        let (kept, made) = (self.clone(), result.clone());
        let revise = move |last: Option<&StoredRevision>| {
            let (revising, text) = kept.revise(last, &condition, edit);
            *made.lock().unwrap_or_else(PoisonError::into_inner) = text;
            revising
        };
        let revised = self.store.write_revision(author, Box::new(revise)).await;
        let text = result.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (revised.map_err(|error| self.not_written(&error))?, text) {
            (Revised::Refused(why), _) => Err(why),
            (Revised::Written(_, moved), Some(text)) => {
                self.moved.lock().unwrap_or_else(PoisonError::into_inner).extend(moved);
                Ok(text)
            }
            (Revised::Kept, Some(text)) => Ok(text),
            (_, None) => {
                let (file, reason) = (self.name(), "the store did not show it".to_owned());
                Err(ConfigSourceError::Unknown { file, reason })
            }
        }
    }

    /// What becomes of the last revision, and the document as it stands then.
    fn revise(&self, last: Option<&StoredRevision>, condition: &IfMatch, edit: Edit) -> (Revising, Option<ConfigText>) {
        let etag = last.map(|last| ETag::of_revision(last.number, &last.text));
        if !condition.allows(etag) {
            let stale = ConfigSourceError::Stale { etag: etag.unwrap_or(ETag::of(b"")) };
            return (Revising::Refuse(stale), None);
        }
        let before = last.map(|last| last.text.as_slice());
        let after = match edit(before.unwrap_or_default()) {
            Ok(after) => without_mark(after),
            Err(refused) => return (Revising::Refuse(ConfigSourceError::Refused(refused)), None),
        };
        if after.len() > MAX_DOCUMENT_BYTES {
            let detail = format!("the document would be larger than {MAX_DOCUMENT_BYTES} bytes");
            let refused = Refused { code: Code::Invalid, detail };
            return (Revising::Refuse(ConfigSourceError::Refused(refused)), None);
        }
        match last {
            Some(last) if last.text == after => (Revising::Keep, Some(self.text(last.number, after))),
            _ => {
                let scopes = before.map(|before| self.superseded(before, &after)).unwrap_or_default();
                let text = self.text(last.map_or(1, |last| last.number + 1), after.clone());
                (Revising::Write(NextRevision { text: after, scopes }), Some(text))
            }
        }
    }

    /// What was opened under `before` and serves no new call under `after`.
    fn superseded(&self, before: &[u8], after: &[u8]) -> Vec<ResetScope> {
        let parsed = |text| config::parse(&Source { file: &self.place, text }, &|name| (self.variables)(name));
        let (Ok(before), Ok(after)) = (parsed(before), parsed(after)) else {
            // Nobody can tell what stays (contract 5.9, unverifiable predecessor).
            return vec![ResetScope::Global];
        };
        if before.interceptors != after.interceptors {
            return vec![ResetScope::Global];
        }
        let ended = before.servers.iter().filter(|server| is_ended(server, &after));
        ended.map(|server| ResetScope::Server(server.name.clone())).collect()
    }

    fn text(&self, number: i64, text: Vec<u8>) -> ConfigText {
        ConfigText { file: self.place.clone(), etag: ETag::of_revision(number, &text), text }
    }

    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn unreadable(&self, error: &StoreError) -> ConfigSourceError {
        ConfigSourceError::Unreadable { file: self.name(), reason: error.to_string() }
    }

    fn not_written(&self, error: &StoreError) -> ConfigSourceError {
        let (file, reason) = (self.name(), error.to_string());
        match error.class() {
            Class::Unknown => ConfigSourceError::Unknown { file, reason },
            _ => ConfigSourceError::NotWritten { file, reason },
        }
    }
}

/// Whether the sessions with this server end with a document that says `after`.
fn is_ended(server: &ServerEntry, after: &Document) -> bool {
    let Ok(before) = &server.config else { return false };
    let after = after.servers.iter().find(|other| other.name == server.name);
    after.and_then(|after| after.config.as_ref().ok()).is_none_or(|after| touch(before, after) == Touch::Reconnect)
}

/// `text` as it is stored: without a byte-order mark (contract 1.11).
fn without_mark(mut text: Vec<u8>) -> Vec<u8> {
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len());
    }
    text
}
