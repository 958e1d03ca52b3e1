//! Replaces the file as a whole (contract 1.11). Blocks; the caller holds the write lock.
//!
//! Owns the order that keeps one of two whole documents in place whenever the process dies: temporary file beside the
//! target, mode, fsync, rename, fsync of the folder. A symbolic link stays and its target is replaced. A file that is
//! a mount point cannot be renamed over: it is overwritten in place, which is the one case that can tear. Never writes
//! a byte-order mark. A failure before the rename leaves the old file as it was and no temporary file behind; those of
//! writers that were killed are removed by the next one.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::lock::beside;

/// A new file holds secrets: it is for its owner only.
const NEW_FILE_MODE: u32 = 0o600;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Why a file was not replaced.
pub(super) enum WriteError {
    /// File, folder or file system are read-only; the text says which.
    ReadOnly(String),
    /// Nothing changed.
    Before(io::Error),
    /// It failed midway: the file may hold anything.
    Midway(io::Error),
}

/// How the file came into place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Renamed,
    /// It is a mount point; a crash midway would have torn it.
    InPlace,
}

/// What `path` leads to: the file a link points to, or `path` itself where there is no file yet.
///
/// # Errors
/// The folder does not exist, or a link leads nowhere.
pub(super) fn target_of(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
            let folder = fs::canonicalize(path.parent().unwrap_or(Path::new("/")))?;
            Ok(folder.join(path.file_name().unwrap_or_default()))
        }
        target => target,
    }
}

/// Whether what the system said means that it may not be written.
pub(super) fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// `text` as it is stored: without a byte-order mark.
pub(super) fn without_mark(mut text: Vec<u8>) -> Vec<u8> {
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len());
    }
    text
}

/// Replaces `target` by `text`.
///
/// # Errors
/// What is stored after each is said at [`WriteError`].
pub(super) fn replace(target: &Path, text: &[u8]) -> Result<Way, WriteError> {
    replace_by(target, text, |from, to| fs::rename(from, to))
}

fn replace_by(
    target: &Path,
    text: &[u8],
    rename: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> Result<Way, WriteError> {
    let before = fs::metadata(target).ok();
    refuse_read_only(target, before.as_ref())?;
    remove_left_over(target);
    let temporary = Temporary::write(target, text, before.as_ref()).map_err(refused_or_before)?;
    match rename(&temporary.0, target) {
        Ok(()) => {
            // The file is in place; a file system that cannot sync a folder is no reason to report a failure.
            let _ = target.parent().map(|folder| File::open(folder).and_then(|folder| folder.sync_all()));
            Ok(Way::Renamed)
        }
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            let mut file = OpenOptions::new().write(true).open(target).map_err(refused_or_before)?;
            overwrite(&mut file, text).map_err(WriteError::Midway)?;
            Ok(Way::InPlace)
        }
        Err(error) => Err(refused_or_before(error)),
    }
}

fn refused_or_before(error: io::Error) -> WriteError {
    if is_read_only(&error) { WriteError::ReadOnly(error.to_string()) } else { WriteError::Before(error) }
}

/// A rename would also replace a file that nobody may write, so it is asked first. The mode speaks for itself, since
/// root may write everything.
fn refuse_read_only(target: &Path, before: Option<&Metadata>) -> Result<(), WriteError> {
    let folder = target.parent().unwrap_or(Path::new("/"));
    if before.is_some_and(|file| file.permissions().readonly()) {
        return Err(WriteError::ReadOnly("the file is read-only".to_owned()));
    }
    if before.is_some()
        && let Err(error) = access(target, Access::WRITE_OK)
    {
        return Err(WriteError::ReadOnly(error.to_string()));
    }
    if fs::metadata(folder).is_ok_and(|folder| folder.permissions().readonly()) {
        return Err(WriteError::ReadOnly("its folder is read-only".to_owned()));
    }
    Ok(())
}

/// Writes over the file without emptying it first: a reader in between sees old or new bytes rather than none.
fn overwrite(file: &mut File, text: &[u8]) -> io::Result<()> {
    file.write_all(text)?;
    file.set_len(text.len() as u64)?;
    file.sync_all()
}

/// Removes temporary files of writers that died; whoever holds the lock is the only one alive.
fn remove_left_over(target: &Path) {
    let (Some(folder), prefix) = (target.parent(), beside(target, "")) else { return };
    let prefix = prefix.file_name().unwrap_or_default().as_encoded_bytes();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(prefix) && name.as_encoded_bytes().ends_with(b".tmp") {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The name of the new text beside its target; nothing has that name once this is dropped.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Temporary {
    /// Writes the text down to the disk, with the mode and, where we may, the owner of the file it replaces.
    fn write(target: &Path, text: &[u8], before: Option<&Metadata>) -> io::Result<Self> {
        let path = beside(target, &format!("{}.tmp", std::process::id()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(NEW_FILE_MODE).open(&path)?;
        let temporary = Self(path);
        file.write_all(text)?;
        if let Some(before) = before {
            let ours = file.metadata()?;
            if (ours.uid(), ours.gid()) != (before.uid(), before.gid()) {
                let _ = fchown(&file, Some(before.uid()), Some(before.gid()));
            }
            file.set_permissions(Permissions::from_mode(before.mode() & 0o7777))?;
        }
        file.sync_all()?;
        Ok(temporary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn file(mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        fs::write(&path, "a longer text than the new one").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        (folder, path)
    }

    fn failing(kind: io::ErrorKind) -> impl FnOnce(&Path, &Path) -> io::Result<()> {
        move |_, _| Err(kind.into())
    }

    #[test]
    fn a_file_is_replaced_whole_with_its_mode_and_nothing_stays_beside_it() {
        // Contract 1.11.
        let (folder, path) = file(0o640);
        fs::write(folder.path().join(".x.json.99.tmp"), "left by a writer that was killed").unwrap();
        let way = replace(&path, b"new").ok().unwrap();
        assert_eq!((way, fs::read(&path).unwrap().as_slice()), (Way::Renamed, b"new".as_slice()));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
        assert_eq!(names(folder.path()), ["x.json"]);
        replace(&folder.path().join("new.json"), b"{}").ok().unwrap();
        assert_eq!(fs::metadata(folder.path().join("new.json")).unwrap().mode() & 0o7777, 0o600);
    }

    #[test]
    fn a_failed_rename_leaves_the_old_file_and_no_other() {
        // Contract 1.11, failure before rename.
        let (folder, path) = file(0o644);
        let failed = replace_by(&path, b"new", failing(io::ErrorKind::StorageFull));
        assert!(matches!(failed, Err(WriteError::Before(_))));
        assert_eq!(fs::read(&path).unwrap(), b"a longer text than the new one");
        assert_eq!(names(folder.path()), ["x.json"]);
    }

    #[test]
    fn a_mount_point_is_overwritten_in_place() {
        // Contract 1.11, EBUSY.
        let (folder, path) = file(0o644);
        let inode = fs::metadata(&path).unwrap().ino();
        let way = replace_by(&path, b"new", failing(io::ErrorKind::ResourceBusy)).ok().unwrap();
        assert_eq!((way, fs::read(&path).unwrap().as_slice()), (Way::InPlace, b"new".as_slice()));
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
        assert_eq!(names(folder.path()), ["x.json"]);
    }

    #[test]
    fn what_is_read_only_is_refused_even_to_root() {
        let (_folder, path) = file(0o444);
        assert!(
            matches!(replace(&path, b"new"), Err(WriteError::ReadOnly(reason)) if reason == "the file is read-only")
        );
        let (folder, path) = file(0o644);
        fs::set_permissions(folder.path(), Permissions::from_mode(0o555)).unwrap();
        assert!(
            matches!(replace(&path, b"new"), Err(WriteError::ReadOnly(reason)) if reason == "its folder is read-only")
        );
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let refused = replace_by(&path, b"new", failing(io::ErrorKind::ReadOnlyFilesystem));
        assert!(matches!(refused, Err(WriteError::ReadOnly(_))));
    }

    #[test]
    fn a_link_leads_to_the_file_that_is_replaced() {
        // Contract 1.11, target.
        let (folder, path) = file(0o644);
        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink("x.json", &link).unwrap();
        assert_eq!(target_of(&link).unwrap(), fs::canonicalize(&path).unwrap());
        let new = folder.path().join("new.json");
        assert_eq!(target_of(&new).unwrap(), fs::canonicalize(folder.path()).unwrap().join("new.json"));
        fs::remove_file(&path).unwrap();
        assert!(target_of(&link).is_err());
    }

    #[test]
    fn a_byte_order_mark_is_not_written() {
        // Contract 1.11, encoding.
        assert_eq!(without_mark("\u{feff}{}".into()), b"{}");
        assert_eq!(without_mark(b"{}".to_vec()), b"{}");
    }
}
