//! The configuration file on a real file system: followed, replaced, and left alone where it must be.

#![expect(clippy::unwrap_used, reason = "an unwrap that fails fails its test")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use caribou_core::config::{ETag, IfMatch};
use caribou_core::failure::Code;
use caribou_ports::config_source::{ConfigSource as _, ConfigSourceError, ConfigText, Edit, Refused};
use caribou_workspace::ConfigFile;
use tempfile::TempDir;

/// How long a condition may take to come true.
const SOON: Duration = Duration::from_secs(20);

fn none(_: &str) -> Option<String> {
    None
}

/// A folder, and the file that is looked for in it.
fn project() -> (TempDir, ConfigFile) {
    let folder = tempfile::tempdir().unwrap();
    let file = ConfigFile::new(None, Arc::new(none), folder.path().to_owned());
    (folder, file)
}

/// A file with this text, loaded once.
async fn loaded(text: &str) -> (TempDir, PathBuf, ConfigFile) {
    let (folder, file) = project();
    let path = folder.path().join("extensions_config.json");
    fs::write(&path, text).unwrap();
    assert!(file.has_changed());
    assert_eq!(file.load().await.unwrap().unwrap().text, text.as_bytes());
    assert!(!file.has_changed());
    (folder, path, file)
}

/// One way to change a file.
type Step<'a> = Box<dyn FnOnce() + 'a>;

fn becomes(text: &str) -> Edit {
    let text = text.as_bytes().to_vec();
    Box::new(move |_| Ok(text))
}

async fn replace(file: &ConfigFile, text: &str) -> Result<ConfigText, ConfigSourceError> {
    file.replace(IfMatch::default(), becomes(text)).await
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_write_replaces_the_file_and_counts_as_loaded() {
    // Contract 1.11.
    let (folder, path, file) = loaded("{}").await;
    let written = replace(&file, "\u{feff}{\"new\": 1}").await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"{\"new\": 1}");
    assert_eq!((written.text.as_slice(), written.etag), (b"{\"new\": 1}".as_slice(), ETag::of(b"{\"new\": 1}")));
    assert_eq!(written.file, path);
    assert!(!file.has_changed());
    assert_eq!(names(folder.path()), [".extensions_config.json.lock", "extensions_config.json"]);
    assert!(!format!("{written:?}").contains("new"));
}

#[tokio::test]
async fn a_file_is_created_where_it_is_looked_for_first() {
    // Contract 1.9.
    let (folder, file) = project();
    assert!(!file.has_changed() && file.load().await.unwrap().is_none());
    let seen: Edit = Box::new(|stored| Ok(format!("{{\"seen\": {}}}", stored.len()).into_bytes()));
    file.replace(IfMatch::default(), seen).await.unwrap();
    assert_eq!(fs::read(folder.path().join("extensions_config.json")).unwrap(), b"{\"seen\": 0}");
    assert!(!file.has_changed());
}

#[tokio::test]
async fn a_link_stays_and_its_target_is_replaced() {
    // Contract 1.11, target.
    let (folder, file) = project();
    let target = folder.path().join("elsewhere");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("real.json"), "{}").unwrap();
    let link = folder.path().join("extensions_config.json");
    symlink("elsewhere/real.json", &link).unwrap();
    replace(&file, "{\"new\": 1}").await.unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(target.join("real.json")).unwrap(), b"{\"new\": 1}");
    assert_eq!(names(&target), [".real.json.lock", "real.json"]);
}

#[tokio::test]
async fn a_condition_that_does_not_hold_stops_the_write() {
    let (_folder, path, file) = loaded("{}").await;
    let stale = file.replace(IfMatch::OneOf(vec![ETag::of(b"old")]), becomes("{\"lost\": 1}")).await.unwrap_err();
    assert!(matches!(stale, ConfigSourceError::Stale { etag } if etag == ETag::of(b"{}")), "{stale}");
    assert_eq!(fs::read(&path).unwrap(), b"{}");
    file.replace(IfMatch::OneOf(vec![ETag::of(b"{}")]), becomes("{\"new\": 1}")).await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"{\"new\": 1}");
}

#[tokio::test]
async fn an_edit_that_says_no_writes_nothing() {
    let (_folder, path, file) = loaded("{}").await;
    let no: Edit = Box::new(|_| Err(Refused { code: Code::Invalid, detail: "no".to_owned() }));
    let refused = file.replace(IfMatch::default(), no).await.unwrap_err();
    assert!(matches!(refused, ConfigSourceError::Refused(refused) if refused.detail == "no"));
    assert_eq!(fs::read(&path).unwrap(), b"{}");
}

#[tokio::test]
async fn a_document_that_could_not_be_read_again_is_not_written() {
    // Contract 2.2, the candidate is validated before writing.
    let (_folder, path, file) = loaded("{}").await;
    let refused = replace(&file, &" ".repeat(17 * 1024 * 1024)).await.unwrap_err();
    assert!(refused.to_string().contains("would be larger than 16777216 bytes"), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), b"{}");
}

#[tokio::test]
async fn a_read_only_file_says_so_and_stays() {
    let (folder, path, file) = loaded("{}").await;
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    let refused = replace(&file, "{\"new\": 1}").await.unwrap_err();
    assert!(
        refused.to_string().contains("extensions_config.json cannot be written: the file is read-only"),
        "{refused}"
    );
    assert_eq!(fs::read(&path).unwrap(), b"{}");
    // What changes nothing needs no right to write.
    replace(&file, "{}").await.unwrap();
    drop(folder);
}

#[tokio::test]
async fn nothing_is_written_over_a_file_that_cannot_be_read() {
    let (_folder, path, file) = loaded("{}").await;
    fs::write(&path, "").unwrap();
    let refused = replace(&file, "{\"new\": 1}").await.unwrap_err();
    assert!(matches!(&refused, ConfigSourceError::Refused(why) if why.code == Code::Invalid), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), b"");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let argument = ConfigFile::new(Some(path.clone()), Arc::new(none), PathBuf::from("/"));
    assert!(matches!(replace(&argument, "{}").await, Err(ConfigSourceError::Unreadable { .. })));
}

#[tokio::test]
async fn a_vanished_file_is_no_change_and_one_that_comes_back_is() {
    // Contract 5.4.
    let (_folder, path, file) = loaded("{}").await;
    fs::remove_file(&path).unwrap();
    assert!(!file.has_changed());
    assert!(file.load().await.unwrap().is_none());
    fs::write(&path, "{\"back\": 1}").unwrap();
    assert!(file.has_changed());
}

#[tokio::test]
async fn a_file_that_comes_before_the_one_in_use_is_a_change() {
    // Contract 5.4, another path.
    let (folder, file) = project();
    fs::write(folder.path().join("mcp_config.json"), "{}").unwrap();
    file.load().await.unwrap().unwrap();
    assert!(!file.has_changed());
    fs::write(folder.path().join("extensions_config.json"), "{}").unwrap();
    assert!(file.has_changed());
}

#[tokio::test]
async fn what_cannot_be_read_is_an_error_once_until_it_moves() {
    let (_folder, path, file) = loaded("{}").await;
    fs::File::options().write(true).open(&path).unwrap().set_len(17 * 1024 * 1024).unwrap();
    assert!(file.has_changed());
    let error = file.load().await.unwrap_err();
    assert!(error.to_string().contains("it is larger than 16777216 bytes"), "{error}");
    assert!(!file.has_changed());
    fs::write(&path, "{\"mended\": 1}").unwrap();
    assert!(file.has_changed());
}

#[tokio::test]
async fn writers_take_turns_and_none_is_lost() {
    // Contract 1.11, locks.
    let (_folder, path, file) = loaded("0").await;
    let other = ConfigFile::new(Some(path.clone()), Arc::new(none), PathBuf::from("/"));
    let count: fn() -> Edit = || {
        Box::new(|stored| {
            let count: u32 = std::str::from_utf8(stored).unwrap().parse().unwrap();
            Ok((count + 1).to_string().into_bytes())
        })
    };
    let mut writers = tokio::task::JoinSet::new();
    for writer in [&file, &other].into_iter().cycle().take(40) {
        let write = writer.replace(IfMatch::default(), count());
        writers.spawn(async move { write.await.map(drop) });
    }
    while let Some(written) = writers.join_next().await {
        written.unwrap().unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), b"40");
}

#[tokio::test]
async fn a_write_goes_on_when_nobody_waits_for_it_any_more() {
    // Contract 1.11, cancellation.
    let (_folder, path, file) = loaded("{}").await;
    let (entered, in_edit) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    let held: Edit = Box::new(move |_| {
        entered.send(()).unwrap();
        gate.recv_timeout(SOON).unwrap();
        Ok(b"{\"held\": 1}".to_vec())
    });
    let caller = tokio::spawn(file.replace(IfMatch::default(), held));
    tokio::task::spawn_blocking(move || in_edit.recv_timeout(SOON).unwrap()).await.unwrap();
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    go.send(()).unwrap();
    // The next writer gets the lock only after the first has ended. Nobody heard of either here.
    let other = ConfigFile::new(Some(path.clone()), Arc::new(none), PathBuf::from("/"));
    let next: Edit = Box::new(|stored| {
        assert_eq!(stored, b"{\"held\": 1}");
        Ok(b"{\"next\": 1}".to_vec())
    });
    other.replace(IfMatch::default(), next).await.unwrap();
    assert!(file.has_changed() && !other.has_changed());
    assert_eq!(fs::read(&path).unwrap(), b"{\"next\": 1}");
}

#[tokio::test]
async fn who_waits_is_woken_by_every_way_to_change_a_file() {
    // Contract 5.4.
    let (folder, path, file) = loaded("{\"n\": 0}").await;
    let mount = folder.path().join("mount");
    fs::create_dir_all(mount.join("..1")).unwrap();
    fs::create_dir_all(mount.join("..2")).unwrap();
    fs::write(mount.join("..1/x.json"), "{\"n\": 5}").unwrap();
    fs::write(mount.join("..2/x.json"), "{\"n\": 6}").unwrap();
    symlink("..1", mount.join("..data")).unwrap();
    let steps: [(&str, Step<'_>); 6] = [
        ("{\"n\": 1}", Box::new(|| fs::write(&path, "{\"n\": 1}").unwrap())),
        (
            "{\"n\": 2}",
            Box::new(|| {
                fs::write(folder.path().join("new"), "{\"n\": 2}").unwrap();
                fs::rename(folder.path().join("new"), &path).unwrap();
            }),
        ),
        (
            "{\"n\": 3}",
            Box::new(|| {
                fs::remove_file(&path).unwrap();
                fs::write(&path, "{\"n\": 3}").unwrap();
            }),
        ),
        (
            "{\"n\": 5}",
            Box::new(|| {
                symlink("mount/..data/x.json", folder.path().join("link")).unwrap();
                fs::rename(folder.path().join("link"), &path).unwrap();
            }),
        ),
        (
            "{\"n\": 6}",
            Box::new(|| {
                symlink("..2", mount.join("..tmp")).unwrap();
                fs::rename(mount.join("..tmp"), mount.join("..data")).unwrap();
            }),
        ),
        ("{\"n\": 7}", Box::new(|| fs::write(mount.join("..2/x.json"), "{\"n\": 7}").unwrap())),
    ];
    for (text, change) in steps {
        let waiting = tokio::spawn(file.changed());
        change();
        tokio::time::timeout(SOON, waiting).await.unwrap().unwrap();
        assert_eq!(file.load().await.unwrap().unwrap().text, text.as_bytes());
    }
}

#[tokio::test]
async fn our_own_write_and_a_touch_wake_nobody() {
    let (_folder, path, file) = loaded("{}").await;
    let waiting = tokio::spawn(file.changed());
    replace(&file, "{\"ours\": 1}").await.unwrap();
    fs::write(&path, "{\"ours\": 1}").unwrap();
    // The one that does wake is the last.
    assert!(!waiting.is_finished());
    fs::write(&path, "{\"theirs\": 1}").unwrap();
    tokio::time::timeout(SOON, waiting).await.unwrap().unwrap();
}
