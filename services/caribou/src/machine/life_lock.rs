//! One file for each life, locked for as long as anything of that life is left: by main and by its guard, and a guard
//! leaves no child behind (durability.md 2.2, guard c).
//!
//! Whoever gets the lock has proof that the life is over, but only where a lock is known to mean that: on a file system
//! of this machine, and on the very file, which says what life it is of and where it lies. A copy of it proves nothing.
//! Wherever that is in doubt, there is no proof.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use caribou_core::ids::BootId;
use caribou_ports::store::Replica;
use rustix::fs::{Mode, OFlags, fstatfs, open};

use super::identity::host_id;

/// File systems of one kernel, on which whoever locks a file keeps out everybody else who can open it: ext, XFS, Btrfs,
/// tmpfs, overlayfs, F2FS, ZFS and bcachefs, by the numbers that `statfs` gives them.
const LOCAL: [u32; 8] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0xf2f5_2010, 0x2fc1_2fc1, 0xca45_1a4e];

/// The longest text of such a file.
const MAX_BYTES: u64 = 256;

/// Files of lives that nobody asked about are removed after so long.
const FORGOTTEN: Duration = Duration::from_secs(86_400);

/// The lock of this life, held until it is removed or this process and its guard are gone.
#[derive(Debug)]
pub(crate) struct LifeLock {
    path: PathBuf,
    file: File,
}

impl LifeLock {
    /// Makes and locks the file of this life in `folder`, and removes those of lives that are long gone.
    ///
    /// # Errors
    /// The folder cannot be written, or a lock in it proves nothing.
    pub(crate) fn hold(folder: &Path, boot: &BootId) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        remove_forgotten(folder);
        let path = std::path::absolute(folder.join(name_of(boot)))?;
        let mut file = File::options().create_new(true).write(true).open(&path)?;
        let held = fill(&mut file, boot);
        if let Err(error) = held {
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok(Self { path, file })
    }

    /// The same where it can be had; without it the others wait for the lease of this life to end.
    pub(crate) fn if_possible(folder: &Path, boot: &BootId) -> Option<Self> {
        Self::hold(folder, boot)
            .inspect_err(|error| {
                let folder = folder.display();
                tracing::info!("no lock in {folder} proves the end of this replica, its lease has to: {error}");
            })
            .ok()
    }

    /// What the others of this machine are told, so that they may try the lock.
    pub(crate) fn told(&self, replica: Replica) -> Replica {
        let (Some(host_id), Some(path)) = (host_id(), self.path.to_str()) else { return replica };
        Replica { host_id: Some(host_id), lock_path: Some(path.to_owned()), ..replica }
    }

    /// The same lock once more, for the guard: both hold it.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub(crate) fn again(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// The end of this life is on record: nobody needs proof of it.
    pub(crate) fn remove(self) {
        // Whoever finds it later finds it unlocked, and removes it.
        let _ = fs::remove_file(&self.path);
    }
}

fn fill(file: &mut File, boot: &BootId) -> io::Result<()> {
    if !is_local(file)? {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "not a file system that locks are proof on"));
    }
    file.try_lock().map_err(io::Error::from)?;
    let text = text_of(boot, file)?;
    file.write_all(text.as_bytes())
}

/// The lock of another life, had by us: nothing of it holds it any more.
#[derive(Debug)]
pub(super) struct Proof(#[expect(dead_code, reason = "held, so that nobody else proves the same meanwhile")] File);

/// Proof that main and guard of this life are gone; `None` = there is none.
pub(super) fn prove(path: &Path, boot: &BootId) -> io::Result<Option<Proof>> {
    let Some(file) = opened(path, boot)? else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let mut text = String::new();
    (&file).take(MAX_BYTES).read_to_string(&mut text)?;
    let is_the_file = text == text_of(boot, &file)?;
    Ok(is_the_file.then_some(Proof(file)))
}

/// Removes the file of a life whose end was proved.
pub(super) fn remove(path: &Path, boot: &BootId) {
    // The path comes from a database: nothing else is removed for it.
    if matches!(prove(path, boot), Ok(Some(_))) {
        let _ = fs::remove_file(path);
    }
}

/// The file, if it is one that this life can have made.
fn opened(path: &Path, boot: &BootId) -> io::Result<Option<File>> {
    if path.file_name() != Some(name_of(boot).as_ref()) || !path.is_absolute() {
        return Ok(None);
    }
    // Neither follows a link nor waits for whoever is at the other end of a pipe.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    Ok((file.metadata()?.is_file() && is_local(&file)?).then_some(file))
}

fn name_of(boot: &BootId) -> String {
    format!("replica-{boot}.lock")
}

/// Names the life and the file itself, which a copy would not be.
fn text_of(boot: &BootId, file: &File) -> io::Result<String> {
    let place = file.metadata()?;
    Ok(format!("{boot} {} {}\n", place.dev(), place.ino()))
}

fn is_local(file: &File) -> io::Result<bool> {
    let kind = u32::try_from(fstatfs(file)?.f_type);
    Ok(kind.is_ok_and(|kind| LOCAL.contains(&kind)))
}

/// All replicas of this machine may have been killed at once, so that nobody asked about them before they were
/// forgotten.
fn remove_forgotten(folder: &Path) {
    for path in fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().and_then(|name| name.to_str());
        let boot = name.and_then(|name| name.strip_prefix("replica-")?.strip_suffix(".lock"));
        let is_old = || fs::metadata(&path).and_then(|file| file.modified()).ok().and_then(|at| at.elapsed().ok());
        if let Some(boot) = boot
            && is_old().is_some_and(|age| age > FORGOTTEN)
        {
            remove(&path, &BootId::from(boot));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: &str = "019ad000-0000-7000-8000-000000000001";

    #[test]
    fn a_life_is_proved_gone_once_nobody_holds_its_lock_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let boot = BootId::from(BOOT);
        let held = LifeLock::hold(&folder.path().join("data"), &boot).unwrap();
        let path = held.path.clone();
        let guards = held.again().unwrap();
        assert!(prove(&path, &boot).unwrap().is_none());
        drop(held);
        assert!(prove(&path, &boot).unwrap().is_none(), "the guard holds it still");
        drop(guards);
        let proof = prove(&path, &boot).unwrap().unwrap();
        assert!(prove(&path, &boot).unwrap().is_none(), "one at a time");
        drop(proof);
        remove(&path, &boot);
        assert!(!path.exists());
        assert!(prove(&path, &boot).is_err());
    }

    #[test]
    fn a_copy_another_life_and_another_file_prove_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let boot = BootId::from(BOOT);
        let held = LifeLock::hold(folder.path(), &boot).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let copy = elsewhere.path().join(held.path.file_name().unwrap());
        fs::copy(&held.path, &copy).unwrap();
        assert!(prove(&copy, &boot).unwrap().is_none());
        let other = BootId::from("019ad000-0000-7000-8000-000000000002");
        let path = held.path.clone();
        drop(held);
        assert!(prove(&path, &other).unwrap().is_none());
        let link = elsewhere.path().join("link").join(path.file_name().unwrap());
        fs::create_dir(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(prove(&link, &boot).is_err());
        remove(&copy, &boot);
        assert!(copy.exists(), "what is no such file is left alone");
        assert!(prove(&path, &boot).unwrap().is_some());
    }

    #[test]
    fn a_clean_end_leaves_no_file_and_a_file_system_of_the_kernel_proves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        LifeLock::hold(folder.path(), &BootId::from(BOOT)).unwrap().remove();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(!is_local(&File::open("/proc/self/stat").unwrap()).unwrap());
    }
}
