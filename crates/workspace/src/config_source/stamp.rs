//! Whether the content of the file differs from what was last handed out (contract 5.4, as architecture.md §10 amends
//! it).
//!
//! Owns when an unchanged identity is proof enough: the file had rested for a while when it was read, it lies on a
//! local file system, and its content was looked at not long ago. Otherwise the content decides. Unchanged content
//! under a new identity (a touch, a rename of the same) is no change. A file that is gone is no change; one that is
//! there and cannot be read is, once for each identity.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use caribou_core::config::ETag;

use super::reading::{Identity, Reading};

/// An edit this soon after another may leave the same times: clocks of file systems tick in steps of up to 2 s (FAT).
const RESTED: Duration = Duration::from_secs(2);

/// The content is looked at this often whatever the identity says, for file systems that keep none.
const LOOK_AT_CONTENT: Duration = Duration::from_secs(30);

/// What was last handed out.
#[derive(Default)]
pub(super) enum Stamp {
    /// Nothing: the file was missing, or was never read.
    #[default]
    Nothing,
    /// A text.
    Text(Text),
    /// An error; looked at again when the identity changes, or after a while.
    Unreadable { path: PathBuf, identity: Option<Identity>, since: Instant },
}

/// A text that was handed out.
pub(super) struct Text {
    path: PathBuf,
    etag: ETag,
    identity: Identity,
    /// Whether the file had rested when it was read, on a local file system.
    settled: bool,
    since: Instant,
}

impl Text {
    /// The text of this reading of `path`.
    pub(super) fn of(path: &Path, reading: &Reading) -> Self {
        let rested = reading.taken.saturating_sub(reading.identity.last_moved()) >= RESTED;
        Self {
            path: path.to_owned(),
            etag: ETag::of(&reading.bytes),
            identity: reading.identity,
            settled: rested && !reading.distant,
            since: reading.since,
        }
    }
}

impl Stamp {
    /// What could not be read.
    pub(super) fn unreadable(path: &Path) -> Self {
        Self::Unreadable { path: path.to_owned(), identity: Identity::of(path).ok(), since: Instant::now() }
    }

    /// Whether the file at `path`, which is `identity` now, differs from what was handed out.
    pub(super) fn differs(&mut self, path: &Path, identity: Identity) -> bool {
        match self {
            Self::Nothing => true,
            Self::Unreadable { path: before, identity: then, since } => {
                before != path || *then != Some(identity) || since.elapsed() >= LOOK_AT_CONTENT
            }
            Self::Text(text) if text.path != path => true,
            Self::Text(text) if text.vouches_for(identity) => false,
            Self::Text(text) => match Reading::of(path) {
                Ok(reading) => {
                    let now = Text::of(path, &reading);
                    let differs = now.etag != text.etag;
                    if !differs {
                        *text = now;
                    }
                    differs
                }
                Err(error) => error.kind() != std::io::ErrorKind::NotFound,
            },
        }
    }
}

impl Text {
    fn vouches_for(&self, identity: Identity) -> bool {
        self.settled && self.identity == identity && self.since.elapsed() < LOOK_AT_CONTENT
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, FileTimes};
    use std::time::SystemTime;

    use super::*;

    /// Whether there is a file at `path` that differs.
    fn differs(stamp: &mut Stamp, path: &Path) -> bool {
        Identity::of(path).is_ok_and(|identity| stamp.differs(path, identity))
    }

    struct Followed {
        folder: tempfile::TempDir,
        stamp: Stamp,
    }

    impl Followed {
        fn new(text: &str) -> Self {
            let mut followed = Self { folder: tempfile::tempdir().unwrap(), stamp: Stamp::Nothing };
            fs::write(followed.path(), text).unwrap();
            followed.load();
            followed
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("x.json")
        }

        fn load(&mut self) {
            self.stamp = Stamp::Text(Text::of(&self.path(), &Reading::of(&self.path()).unwrap()));
        }

        fn differs(&mut self) -> bool {
            let path = self.path();
            differs(&mut self.stamp, &path)
        }
    }

    fn set_modified(path: &Path, at: SystemTime) {
        File::options().write(true).open(path).unwrap().set_times(FileTimes::new().set_modified(at)).unwrap();
    }

    fn modified(path: &Path) -> SystemTime {
        fs::metadata(path).unwrap().modified().unwrap()
    }

    #[test]
    fn edits_that_hide_their_time_are_seen() {
        // Contract 5.4: same second, older time, same size and time in place.
        for (new, shift) in [("two+", 0.1), ("two+", -3600.0), ("two", 0.0), ("two", -1e9)] {
            let mut followed = Followed::new("one");
            assert!(!followed.differs());
            let path = followed.path();
            let before = modified(&path);
            fs::write(&path, new).unwrap();
            let moved = Duration::from_secs_f64(f64::abs(shift));
            set_modified(&path, if shift < 0.0 { before - moved } else { before + moved });
            assert!(followed.differs(), "{new} {shift}");
            followed.load();
            assert!(!followed.differs());
        }
    }

    #[test]
    fn replacements_are_seen() {
        // Contract 5.4: rename over with the same size and time, delete and create again, another target of a link.
        let mut followed = Followed::new("one");
        let (path, other) = (followed.path(), followed.folder.path().join("other"));
        fs::write(&other, "two").unwrap();
        set_modified(&other, modified(&path));
        fs::rename(&other, &path).unwrap();
        assert!(followed.differs());
        followed.load();
        fs::remove_file(&path).unwrap();
        assert!(!followed.differs());
        fs::write(&path, "three").unwrap();
        assert!(followed.differs());
    }

    #[test]
    fn a_swapped_folder_of_mounted_data_is_seen() {
        // A Kubernetes ConfigMap: the file is a link into `..data`, itself a link that is renamed over.
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (version, text) in [("..1", "one"), ("..2", "two")] {
            fs::create_dir(at(version)).unwrap();
            fs::write(at(version).join("x.json"), text).unwrap();
        }
        std::os::unix::fs::symlink("..1", at("..data")).unwrap();
        std::os::unix::fs::symlink("..data/x.json", at("x.json")).unwrap();
        let mut followed = Followed { folder, stamp: Stamp::Nothing };
        followed.load();
        assert!(!followed.differs());
        let at = |name: &str| followed.folder.path().join(name);
        std::os::unix::fs::symlink("..2", at("..tmp")).unwrap();
        fs::rename(at("..tmp"), at("..data")).unwrap();
        assert!(followed.differs());
    }

    #[test]
    fn unchanged_content_is_no_change() {
        // Contract 5.4, signature equal.
        let mut followed = Followed::new("one");
        let path = followed.path();
        set_modified(&path, modified(&path) + Duration::from_secs(5));
        assert!(!followed.differs());
        fs::copy(&path, followed.folder.path().join("copy")).unwrap();
        fs::rename(followed.folder.path().join("copy"), &path).unwrap();
        assert!(!followed.differs());
    }

    #[test]
    fn a_file_that_rested_is_known_by_its_identity_alone() {
        let mut followed = Followed::new("one");
        let path = followed.path();
        let Stamp::Text(text) = &mut followed.stamp else { panic!("a text") };
        assert!(!text.settled);
        // As if it had been read later: the content is no longer looked at, so the wrong hash goes unnoticed.
        text.settled = true;
        text.etag = ETag::of(b"other");
        assert!(!differs(&mut followed.stamp, &path));
        let Stamp::Text(text) = &mut followed.stamp else { panic!("a text") };
        text.since -= LOOK_AT_CONTENT;
        assert!(differs(&mut followed.stamp, &path));
    }

    #[test]
    fn a_reading_settles_once_the_file_has_rested() {
        let followed = Followed::new("one");
        let mut reading = Reading::of(&followed.path()).unwrap();
        reading.taken = reading.identity.last_moved() + RESTED;
        assert!(Text::of(&followed.path(), &reading).settled);
        reading.distant = true;
        assert!(!Text::of(&followed.path(), &reading).settled);
        // A time in the future proves nothing.
        (reading.distant, reading.taken) = (false, Duration::ZERO);
        assert!(!Text::of(&followed.path(), &reading).settled);
    }

    #[test]
    fn another_path_is_a_change_and_so_is_the_first_file() {
        // Contract 5.4, another path; no file at first, one later.
        let mut followed = Followed::new("one");
        let other = followed.folder.path().join("other");
        fs::write(&other, "one").unwrap();
        assert!(differs(&mut followed.stamp, &other));
        assert!(differs(&mut Stamp::Nothing, &other));
        assert!(!differs(&mut Stamp::Nothing, &followed.folder.path().join("none")));
    }

    #[test]
    fn what_cannot_be_read_is_told_once_until_it_moves() {
        // Contract 5.4, not readable.
        let folder = tempfile::tempdir().unwrap();
        let mut stamp = Stamp::unreadable(folder.path());
        assert!(!differs(&mut stamp, folder.path()));
        fs::write(folder.path().join("new"), "").unwrap();
        assert!(differs(&mut stamp, folder.path()));
    }
}
