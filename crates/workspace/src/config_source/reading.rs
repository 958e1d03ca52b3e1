//! Reads the file together with what identifies it.
//!
//! Owns reading whole and bounded (B1), and noticing that the file moved meanwhile: it is then read again, and if it
//! never rests, what was read keeps the identity from before, so that the next look finds it changed. Errors hold no
//! part of the file (O3). Blocks: callers inside an async runtime use a blocking task for large or distant files.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use caribou_core::config::MAX_DOCUMENT_BYTES;
use rustix::time::{ClockId, clock_gettime};

/// A file that moves more often than this while it is read is somebody writing piece by piece.
const ATTEMPTS: usize = 3;

/// Kinds of file systems that change behind our back or whose times cannot be trusted, by the magic numbers of
/// `statfs(2)`: NFS, SMB, SMB2, CIFS, FUSE, Ceph, 9P, AFS, Coda, Lustre, GFS2, OCFS2, VirtualBox, vboxsf.
const DISTANT: [u32; 13] = [
    0x6969,
    0x517b,
    0xfe53_4d42,
    0xff53_4d42,
    0x6573_5546,
    0x00c3_6400,
    0x0102_1997,
    0x5346_414f,
    0x7375_7245,
    0x0bd0_0bd0,
    0x0116_1970,
    0x7461_636f,
    0x786f_4256,
];

/// What tells one state of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: Duration,
    changed: Duration,
}

impl Identity {
    /// The identity of the file that `path` leads to.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        Ok(Self::from(&std::fs::metadata(path)?))
    }

    /// When anything of it last changed, since 1970 in the clock of its file system.
    pub(super) fn last_moved(&self) -> Duration {
        self.modified.max(self.changed)
    }
}

impl From<&Metadata> for Identity {
    fn from(metadata: &Metadata) -> Self {
        let since_1970 = |seconds: i64, nanos: i64| {
            // Times before 1970 do not occur but by mistake; 0 only means that they are old.
            Duration::new(u64::try_from(seconds).unwrap_or_default(), u32::try_from(nanos).unwrap_or_default())
        };
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: since_1970(metadata.mtime(), metadata.mtime_nsec()),
            changed: since_1970(metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// One reading of a file. Without `Debug`: it holds secrets.
pub(crate) struct Reading {
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
    pub(super) identity: Identity,
    /// The file's clock before it was read, since 1970.
    pub(super) taken: Duration,
    /// Our clock before it was read.
    pub(super) since: Instant,
    /// Whether its file system is one of those that must always be read.
    pub(super) distant: bool,
}

impl Reading {
    /// Reads the file that `path` leads to.
    ///
    /// # Errors
    /// It is missing (`NotFound`), no regular file (`InvalidInput`), too large (`FileTooLarge`), or the system refused.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        // Opening a pipe would wait for a writer, so its kind is looked at first.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let mut reading = Self::once(path)?;
        for _ in 1..ATTEMPTS {
            if Identity::of(path)? == reading.identity {
                break;
            }
            reading = Self::once(path)?;
        }
        Ok(reading)
    }

    fn once(path: &Path) -> io::Result<Self> {
        let (taken, since) = (file_clock(), Instant::now());
        let file = File::open(path)?;
        let identity = Identity::from(&file.metadata()?);
        let mut bytes = Vec::new();
        (&file).take(MAX_DOCUMENT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > MAX_DOCUMENT_BYTES {
            let reason = format!("it is larger than {MAX_DOCUMENT_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
        }
        Ok(Self { bytes, identity, taken, since, distant: is_distant(&file) })
    }
}

/// The clock that local file systems stamp files with, since 1970.
pub(super) fn file_clock() -> Duration {
    let now = clock_gettime(ClockId::Realtime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or_default(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// Whether the file must always be read to know whether it changed. One that cannot be asked counts as such.
pub(super) fn is_distant(file: &File) -> bool {
    // The magic numbers have 32 bits; the width and sign of the field differ by platform.
    rustix::fs::fstatfs(file).map_or(true, |system| DISTANT.contains(&(system.f_type as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_has_the_bytes_and_the_identity_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        std::fs::write(&path, "{}").unwrap();
        let reading = Reading::of(&path).unwrap();
        assert_eq!((reading.bytes.as_slice(), reading.identity), (b"{}".as_slice(), Identity::of(&path).unwrap()));
        assert!(!reading.distant && reading.identity.last_moved() <= file_clock());
    }

    #[test]
    fn what_is_no_bounded_regular_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Reading::of(folder.path()).err().unwrap().to_string(), "it is not a regular file");
        let large = folder.path().join("large");
        File::create(&large).unwrap().set_len(MAX_DOCUMENT_BYTES as u64 + 1).unwrap();
        assert!(Reading::of(&large).err().unwrap().to_string().starts_with("it is larger than"));
        assert_eq!(Reading::of(&folder.path().join("none")).err().unwrap().kind(), io::ErrorKind::NotFound);
    }
}
