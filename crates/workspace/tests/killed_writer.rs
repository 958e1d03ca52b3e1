//! A writer that is killed at any moment leaves one of the two whole documents (contract 1.11).
//!
//! The test starts its own binary as the writer. It counts reported writes, so it proves that writing went on.

#![expect(clippy::unwrap_used, reason = "an unwrap that fails fails its test")]

use std::hash::{BuildHasher as _, RandomState};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use caribou_core::config::IfMatch;
use caribou_ports::config_source::ConfigSource as _;
use caribou_workspace::ConfigFile;

/// Names the file a writer writes; not set in an ordinary run.
const FILE: &str = "CARIBOU_TEST_KILLED_WRITER_FILE";

/// Writes that were reported, over all writers.
const WRITES: usize = 500;

/// No writer is left alive for more writes than this.
const AT_MOST_EACH: u64 = 8;

/// So long that a writer that does not replace the file whole is often caught in the middle.
const LENGTH: usize = 1_000_000;

fn document(of: char) -> Vec<u8> {
    format!("{{\"{of}\": \"{}\"}}", of.to_string().repeat(LENGTH)).into_bytes()
}

fn source(path: &Path) -> ConfigFile {
    ConfigFile::new(Some(path.to_owned()), Arc::new(|_: &str| None), PathBuf::from("/"))
}

async fn write(file: &ConfigFile, of: char) {
    file.replace(IfMatch::default(), Box::new(move |_| Ok(document(of)))).await.unwrap();
}

/// Not a test of its own: what the killed processes run.
#[tokio::test]
async fn writer() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let file = source(Path::new(&path));
    let mut out = std::io::stdout();
    for of in ['a', 'b'].into_iter().cycle() {
        write(&file, of).await;
        out.write_all(b"\x01").unwrap();
        out.flush().unwrap();
    }
}

fn start_writer(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--nocapture"])
        .env(FILE, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Lets a writer write this often and then for a part of one more write, and kills it. Gives the writes it reported.
fn kill_after(mut writer: Child, writes: u64, part: Duration) -> usize {
    let mut out = writer.stdout.take().unwrap();
    let mut reported = 0;
    let mut byte = [0];
    while reported < writes && out.read(&mut byte).unwrap() == 1 {
        reported += u64::from(byte == [1]);
    }
    let end = Instant::now() + part;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    usize::try_from(reported).unwrap()
}

#[tokio::test]
async fn a_writer_killed_at_any_moment_leaves_a_whole_document() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("extensions_config.json");
    let file = source(&path);
    let started = Instant::now();
    write(&file, 'a').await;
    let one_write = u64::try_from(started.elapsed().as_nanos()).unwrap();
    let (a, b) = (document('a'), document('b'));
    let random = RandomState::new();
    let (mut writes, mut kills) = (0, 0_u64);
    while writes < WRITES {
        let chance = random.hash_one(kills);
        let part = Duration::from_nanos(chance % one_write);
        writes += kill_after(start_writer(&path), chance >> 32 & (AT_MOST_EACH - 1), part);
        kills += 1;
        let stored = std::fs::read(&path).unwrap();
        assert!(stored == a || stored == b, "torn after {writes} writes and {kills} kills: {} bytes", stored.len());
    }
    assert!(kills >= 60, "{kills}");
    // The lock died with its holder, and the next writer clears away what the killed ones left.
    write(&file, 'c').await;
    let left = std::fs::read_dir(folder.path()).unwrap().flatten();
    let left: Vec<_> =
        left.map(|entry| entry.file_name()).filter(|name| name.as_encoded_bytes().ends_with(b".tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
}
