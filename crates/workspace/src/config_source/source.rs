//! What the runtime holds: the file of the operator, found anew at each look (contract 1.9, 1.11, 5.4).
//!
//! Owns the unit of a write: find, lock, read, edit, replace. It runs in a task of its own to its end, whoever stops
//! waiting; what it wrote counts as loaded. Which file it is may change under us, so nobody remembers the path. Errors
//! name the file and the reason (O3), every wait has a deadline (B1).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_core::config::{ETag, IfMatch, MAX_DOCUMENT_BYTES};
use caribou_core::failure::Code;
use caribou_ports::BoxFuture;
use caribou_ports::config_source::{ConfigSource, ConfigSourceError, ConfigText, Edit, Refused, ResetMark, Variables};
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::timeout;

use super::lock::{NoLock, WriteLock};
use super::reading::{Identity, Reading};
use super::reset_mark;
use super::stamp::{Stamp, Text};
use super::watch::Watch;
use super::writing::{Way, WriteError, is_read_only, replace, target_of, without_mark};
use crate::config_file::{FILE_NAMES, FileError, Lookup, find};

/// A disk answers within milliseconds; a network mount that needs longer is away.
const READ_AT_MOST: Duration = Duration::from_secs(10);

/// As for reading, with the wait for other writers and for the disk to take the bytes.
const WRITE_AT_MOST: Duration = Duration::from_secs(30);

/// The configuration file, followed and replaced. Cheap to clone.
#[derive(Clone)]
pub struct ConfigFile(Arc<Followed>);

/// The state behind it.
pub(super) struct Followed {
    argument: Option<PathBuf>,
    env: Variables,
    cwd: PathBuf,
    stamp: Mutex<Stamp>,
    /// The last reset that whoever loads has heard of.
    reset: Mutex<Option<ResetMark>>,
    /// Whether looking at the file may hang, as on a network mount.
    distant: AtomicBool,
    told_in_place: AtomicBool,
}

/// What is stored after a write.
struct Replaced {
    text: ConfigText,
    /// `None` when somebody outside of the lock wrote over it already.
    stamp: Option<Text>,
}

impl ConfigFile {
    /// The file that contract 1.9 chooses: `argument` if there is one, else as the variables and `cwd`, an absolute
    /// path, say. A file that is created stands at the place that was named, else in the project root.
    pub fn new(argument: Option<PathBuf>, env: Variables, cwd: PathBuf) -> Self {
        Self(Arc::new(Followed {
            argument,
            env,
            cwd,
            stamp: Mutex::default(),
            reset: Mutex::default(),
            distant: AtomicBool::new(false),
            told_in_place: AtomicBool::new(false),
        }))
    }

    /// Where the file is, or will be created.
    pub fn place(&self) -> PathBuf {
        self.0.place()
    }
}

impl ConfigSource for ConfigFile {
    fn has_changed(&self) -> bool {
        self.0.has_changed()
    }

    fn load(&self) -> BoxFuture<'static, Result<Option<ConfigText>, ConfigSourceError>> {
        let followed = self.0.clone();
        let name = followed.place().display().to_string();
        Box::pin(async move {
            match timeout(READ_AT_MOST, spawn_blocking(move || followed.load())).await {
                Ok(Ok(loaded)) => loaded,
                Ok(Err(ended)) => Err(unreadable(name, &ended.to_string())),
                Err(_) => Err(unreadable(name, &format!("no answer within {} s", READ_AT_MOST.as_secs()))),
            }
        })
    }

    fn replace(&self, condition: IfMatch, edit: Edit) -> BoxFuture<'static, Result<ConfigText, ConfigSourceError>> {
        let followed = self.0.clone();
        Box::pin(async move {
            let name = followed.place().display().to_string();
            match timeout(WRITE_AT_MOST, tokio::spawn(followed.clone().replace(condition, edit))).await {
                Ok(Ok(replaced)) => replaced.map(|replaced| followed.handed_out(replaced)),
                Ok(Err(ended)) => Err(unknown(name, ended_because(&ended))),
                Err(_) => Err(unknown(name, format!("no answer within {} s", WRITE_AT_MOST.as_secs()))),
            }
        })
    }

    fn changed(&self) -> BoxFuture<'static, ()> {
        let followed = self.0.clone();
        Box::pin(async move { Watch::of(followed).changed().await })
    }

    fn reset_mark(&self) -> Option<ResetMark> {
        self.0.find().ok().flatten().and_then(|path| reset_mark::read(&path))
    }

    fn publish_reset(&self) -> BoxFuture<'static, Result<bool, ConfigSourceError>> {
        let followed = self.0.clone();
        let place = followed.place();
        Box::pin(async move {
            match timeout(READ_AT_MOST, spawn_blocking(move || followed.publish_reset())).await {
                Ok(Ok(published)) => published,
                Ok(Err(ended)) => Err(not_written(&place, &ended.to_string())),
                Err(_) => Err(not_written(&place, &format!("no answer within {} s", READ_AT_MOST.as_secs()))),
            }
        })
    }
}

impl Followed {
    fn find(&self) -> Result<Option<PathBuf>, FileError> {
        let found = find(&self.lookup())?;
        Ok(found.map(|found| found.path))
    }

    fn lookup(&self) -> Lookup<'_> {
        Lookup { argument: self.argument.as_deref(), env: &*self.env, cwd: &self.cwd }
    }

    /// Where the file is, or would be created.
    pub(super) fn place(&self) -> PathBuf {
        match self.find() {
            Ok(Some(path)) | Err(FileError::Missing { path, .. }) => path,
            _ => self.lookup().project_root().unwrap_or_else(|_| self.cwd.clone()).join(FILE_NAMES[0]),
        }
    }

    pub(super) fn has_changed(&self) -> bool {
        let mut stamp = if self.distant.load(Ordering::Relaxed) {
            // Whoever looks already may hang there; the others go on with what they know.
            let Ok(stamp) = self.stamp.try_lock() else { return false };
            stamp
        } else {
            self.stamp.lock().unwrap_or_else(PoisonError::into_inner)
        };
        // One look at a file that was named, not two: this is asked before each call.
        let named = self.lookup().named().map(|found| found.path);
        let Some(path) = named.or_else(|| self.find().ok().flatten()) else { return false };
        let Ok(identity) = Identity::of(&path) else { return false };
        stamp.differs(&path, identity) || self.is_reset(&path)
    }

    fn is_reset(&self, path: &Path) -> bool {
        let mark = reset_mark::read(path);
        mark.is_some() && mark != *self.reset.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish_reset(&self) -> Result<bool, ConfigSourceError> {
        let Ok(Some(path)) = self.find() else { return Ok(false) };
        let mark = reset_mark::publish(&path).map_err(|error| not_written(&path, &format!("the reset: {error}")))?;
        *self.reset.lock().unwrap_or_else(PoisonError::into_inner) = Some(mark);
        Ok(true)
    }

    fn load(&self) -> Result<Option<ConfigText>, ConfigSourceError> {
        let path = match self.find() {
            Ok(Some(path)) => path,
            Ok(None) | Err(FileError::Missing { .. }) => return Ok(None),
            Err(error) => return Err(unreadable(self.cwd.display().to_string(), &error.to_string())),
        };
        *self.reset.lock().unwrap_or_else(PoisonError::into_inner) = reset_mark::read(&path);
        match Reading::of(&path) {
            Ok(reading) => {
                self.distant.store(reading.distant, Ordering::Relaxed);
                self.stamp(Stamp::Text(Text::of(&path, &reading)));
                Ok(Some(text(path, reading.bytes)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                self.stamp(Stamp::unreadable(&path));
                Err(unreadable(path.display().to_string(), &error.to_string()))
            }
        }
    }

    fn stamp(&self, stamp: Stamp) {
        *self.stamp.lock().unwrap_or_else(PoisonError::into_inner) = stamp;
    }

    /// What was written counts as loaded from here on: not before, since a caller who went away never heard of it.
    fn handed_out(&self, replaced: Replaced) -> ConfigText {
        if let Some(stamp) = replaced.stamp {
            self.stamp(Stamp::Text(stamp));
        }
        replaced.text
    }

    /// The unit of a write, from the lock to the answer.
    async fn replace(self: Arc<Self>, condition: IfMatch, edit: Edit) -> Result<Replaced, ConfigSourceError> {
        let path = self.place();
        let name = path.display().to_string();
        let target = target_of(&path).map_err(|error| not_written(&path, &error.to_string()))?;
        let lock = WriteLock::of(&target).await.map_err(|refusal| match refusal {
            NoLock::Held => not_written(&path, "another writer holds its lock"),
            NoLock::System(error) if is_read_only(&error) => read_only(&path, format!("its folder: {error}")),
            NoLock::System(error) => not_written(&path, &format!("its lock: {error}")),
        })?;
        // The lock goes along: it must not be given back while the thread works, even if this task is dropped.
        let unit = spawn_blocking(move || {
            let replaced = self.edit_and_write(path, &target, &condition, edit);
            drop(lock);
            replaced
        });
        unit.await.unwrap_or_else(|ended| Err(unknown(name, ended_because(&ended))))
    }

    fn edit_and_write(
        &self,
        path: PathBuf,
        target: &Path,
        condition: &IfMatch,
        edit: Edit,
    ) -> Result<Replaced, ConfigSourceError> {
        let stored = stored(&path, target)?;
        let etag = stored.as_deref().map(ETag::of);
        if !condition.allows(etag) {
            return Err(ConfigSourceError::Stale { etag: etag.unwrap_or(ETag::of(b"")) });
        }
        let edited = edit(stored.as_deref().unwrap_or_default()).map_err(ConfigSourceError::Refused)?;
        let edited = without_mark(edited);
        refuse_too_large(&edited)?;
        if stored.as_ref() != Some(&edited) {
            self.write(&path, target, &edited)?;
        }
        let reading = Reading::of(&path).ok().filter(|reading| reading.bytes == edited);
        let stamp = reading.map(|reading| Text::of(&path, &reading));
        Ok(Replaced { text: text(path, edited), stamp })
    }

    fn write(&self, path: &Path, target: &Path, text: &[u8]) -> Result<(), ConfigSourceError> {
        let way = replace(target, text).map_err(|error| match error {
            WriteError::ReadOnly(reason) => read_only(path, reason),
            WriteError::Before(error) => not_written(path, &error.to_string()),
            WriteError::Midway(error) => unknown(path.display().to_string(), error.to_string()),
        })?;
        if way == Way::InPlace {
            let file = path.display();
            if self.told_in_place.swap(true, Ordering::Relaxed) {
                tracing::debug!(%file, "overwritten in place");
            } else {
                tracing::warn!(%file, "it is a mount point, so it is overwritten in place: a crash midway can tear it");
            }
        }
        Ok(())
    }
}

/// A larger document would be written and never read again.
fn refuse_too_large(text: &[u8]) -> Result<(), ConfigSourceError> {
    if text.len() <= MAX_DOCUMENT_BYTES {
        return Ok(());
    }
    let detail = format!("the document would be larger than {MAX_DOCUMENT_BYTES} bytes");
    Err(ConfigSourceError::Refused(Refused { code: Code::Invalid, detail }))
}

/// The bytes of `target`, `None` when there is no such file.
fn stored(path: &Path, target: &Path) -> Result<Option<Vec<u8>>, ConfigSourceError> {
    match Reading::of(target) {
        Ok(reading) if reading.bytes.is_empty() => {
            // A document that means nothing, like any other that is broken; it may also be half written.
            let detail = format!(
                "Invalid MCP configuration: {} is empty, as if somebody were just writing it; write {{}} if it shall \
                 name no servers",
                path.display()
            );
            Err(ConfigSourceError::Refused(Refused { code: Code::Invalid, detail }))
        }
        Ok(reading) => Ok(Some(reading.bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(path.display().to_string(), &error.to_string())),
    }
}

fn text(file: PathBuf, text: Vec<u8>) -> ConfigText {
    ConfigText { file, etag: ETag::of(&text), text }
}

fn unreadable(file: String, reason: &str) -> ConfigSourceError {
    ConfigSourceError::Unreadable { file, reason: reason.to_owned() }
}

fn not_written(path: &Path, reason: &str) -> ConfigSourceError {
    ConfigSourceError::NotWritten { file: path.display().to_string(), reason: reason.to_owned() }
}

fn read_only(path: &Path, reason: String) -> ConfigSourceError {
    ConfigSourceError::ReadOnly { file: path.display().to_string(), reason }
}

fn unknown(file: String, reason: String) -> ConfigSourceError {
    ConfigSourceError::Unknown { file, reason }
}

/// Why a unit did not end by itself.
fn ended_because(ended: &JoinError) -> String {
    if ended.is_panic() { "an internal error" } else { "the replica is stopping" }.to_owned()
}
