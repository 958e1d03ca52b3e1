//! The key of a single replica whose operator configured none: a file beside its other data (contract 7.7).
//!
//! Made once and exclusively, readable by its owner only; processes that share the folder converge on one. A file that
//! holds no key is left as it is: what was encrypted with it may still be saved, and nothing overwrites it. Somebody
//! who is just writing it is waited for, but not for long.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;
use zeroize::Zeroizing;

use super::key::Key;
use super::ring::KeyRing;

/// The name of the file.
const NAME: &str = ".credentials_key";

/// How long a file without a key may be one that is being written.
const SETTLE: Duration = Duration::from_secs(1);

/// Between two looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// More than any key file holds; a larger one is something else.
const MOST_BYTES: u64 = 1024;

/// Why there is no key. Names the file, never what it holds.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be read or made.
    #[error("the key file {file} cannot be used: {reason}; set CARIBOU_CREDENTIALS_KEY, or make `data_dir` writable")]
    Unusable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// The file holds no key. It was left as it is.
    #[error(
        "the key file {file} holds no key and is left as it is: put back the one that stored credentials were \
         encrypted with, or remove it if there are none; `caribou keys generate` prints a new one"
    )]
    Corrupt {
        /// The file.
        file: PathBuf,
    },
}

/// The key in the file of `folder`, made if there is none.
///
/// # Errors
/// It cannot be read or made, or holds no key.
pub async fn key_file(folder: &Path) -> Result<KeyRing, KeyFileError> {
    let file = folder.join(NAME);
    let unusable = |reason| KeyFileError::Unusable { file: folder.join(NAME), reason };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unusable)?;
    let deadline = Instant::now() + SETTLE;
    loop {
        match read(&file) {
            Ok(Some(key)) => return Ok(KeyRing::of(key)),
            Ok(None) if Instant::now() < deadline => tokio::time::sleep(LOOK_EVERY).await,
            Ok(None) => return Err(KeyFileError::Corrupt { file }),
            // Whoever makes it first wins; the others read what it wrote.
            Err(error) if error.kind() == ErrorKind::NotFound => match make(&file) {
                Ok(key) => return Ok(KeyRing::of(key)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(unusable(error)),
            },
            Err(error) => return Err(unusable(error)),
        }
    }
}

/// The key in the file of `folder`, if there is one. Makes nothing and waits for nobody.
///
/// # Errors
/// It cannot be read, or holds no key.
pub fn present_key_file(folder: &Path) -> Result<Option<KeyRing>, KeyFileError> {
    let file = folder.join(NAME);
    match read(&file) {
        Ok(Some(key)) => Ok(Some(KeyRing::of(key))),
        Ok(None) => Err(KeyFileError::Corrupt { file }),
        Err(reason) if reason.kind() == ErrorKind::NotFound => Ok(None),
        Err(reason) => Err(KeyFileError::Unusable { file, reason }),
    }
}

/// What the file holds; `None` = no key.
fn read(file: &Path) -> io::Result<Option<Key>> {
    let mut text = Zeroizing::new(Vec::new());
    OpenOptions::new().read(true).open(file)?.take(MOST_BYTES).read_to_end(&mut text)?;
    Ok(std::str::from_utf8(&text).ok().and_then(|text| Key::parse(text.trim())))
}

/// Makes the file with a new key. It is on disk before anything is encrypted with it.
fn make(file: &Path) -> io::Result<Key> {
    let key = Key::generate()?;
    let mut made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(made, "{}", *key.expose())?;
    made.sync_all()?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn first(ring: &KeyRing) -> String {
        ring.first().expose().to_string()
    }

    #[tokio::test]
    async fn it_is_made_once_for_its_owner_only_and_found_again() {
        // Contract 7.7, unset.
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("data");
        assert!(present_key_file(&folder).unwrap().is_none() && !folder.exists(), "looking makes none");
        let made = key_file(&folder).await.unwrap();
        assert_eq!(first(&present_key_file(&folder).unwrap().unwrap()), first(&made));
        let file = folder.join(NAME);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(first(&key_file(&folder).await.unwrap()), first(&made));
        assert_eq!(fs::read_to_string(&file).unwrap().trim(), first(&made));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn many_that_begin_at_once_converge_on_one_key() {
        // Contract 7.7, unset.
        let home = tempfile::tempdir().unwrap();
        let begun: Vec<_> = (0..16)
            .map(|_| {
                let folder = home.path().to_owned();
                tokio::spawn(async move { first(&key_file(&folder).await.unwrap()) })
            })
            .collect();
        let mut keys = Vec::new();
        for one in begun {
            keys.push(one.await.unwrap());
        }
        keys.dedup();
        assert_eq!(keys.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_without_a_key_is_refused_and_left_as_it_is() {
        // Contract 7.7, a corrupt file; invariant O3.
        let home = tempfile::tempdir().unwrap();
        for text in ["", "hunter2\n"] {
            fs::write(home.path().join(NAME), text).unwrap();
            let begun = Instant::now();
            let refused = key_file(home.path()).await.unwrap_err();
            assert!(begun.elapsed() >= SETTLE, "it may be one that is being written");
            assert!(matches!(refused, KeyFileError::Corrupt { .. }), "{refused}");
            assert!(matches!(present_key_file(home.path()), Err(KeyFileError::Corrupt { .. })));
            assert!(refused.to_string().contains("caribou keys generate") && !refused.to_string().contains("hunter2"));
            assert_eq!(fs::read_to_string(home.path().join(NAME)).unwrap(), text);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_being_written_is_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(NAME);
        fs::write(&file, "").unwrap();
        let key = Key::generate().unwrap().expose();
        let (found, ()) = tokio::join!(key_file(home.path()), async {
            tokio::time::sleep(SETTLE / 2).await;
            fs::write(&file, &*key).unwrap();
        });
        assert_eq!(first(&found.unwrap()), *key);
    }
}
