//! Who may read and write the files of a replica: secrets are for this user alone, and what a replica keeps must be its
//! to write.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use caribou_core::masker::MASK;
use caribou_store::Location;
use rustix::fs::{Access, access};
use serde_json::Value;

use super::document::Kept;
use super::finding::Finding;
use super::ground::Ground;
use crate::settings::{self, File, Inputs, Settings};

/// Everybody on this machine may read it.
const OTHERS_READ: u32 = 0o004;

/// Everybody on this machine may change it.
const OTHERS_WRITE: u32 = 0o002;

/// Only its owner may use a file, or a folder.
const FILE_MODE: &str = "chmod 600";
const FOLDER_MODE: &str = "chmod 700";

pub(super) fn check(ground: &Ground, kept: Option<&Kept>) -> Vec<Finding> {
    let settings = &ground.settings;
    let mut found: Vec<Finding> = Vec::new();
    if let Some(file) = &ground.config_file {
        found.extend(of_file(file, holds_secrets(file)));
    }
    if let Some(Kept { file: Some(file), holds_secrets, .. }) = kept {
        found.extend(of_file(file, *holds_secrets));
    }
    if ground.spoiled(&["data_dir", "threads", "database_url"]).is_none() {
        let database = match settings.database_location() {
            Location::Sqlite(file) if settings.has_database() => Some(file),
            _ => None,
        };
        let keys = settings.data_dir.join(".credentials_key");
        found
            .extend(database.iter().chain([&keys]).filter(|file| file.exists()).filter_map(|file| of_file(file, true)));
        found.extend(database.filter(|file| file.exists()).and_then(|file| unwritable(&file)));
        let threads = settings.threads.root(&settings.data_dir);
        found.extend(of_folder(&settings.data_dir));
        found.extend(Some(threads).filter(|root| *root != settings.data_dir).and_then(of_folder));
    }
    found.extend(private_keys(settings).filter(|file| file.exists()).filter_map(|file| of_file(file, true)));
    if found.is_empty() {
        found.push(Finding::ok("secrets are readable for their owner only, and folders are writable"));
    }
    found
}

fn private_keys(settings: &Settings) -> impl Iterator<Item = &PathBuf> {
    settings.tls.key_file.iter().chain(&settings.cluster.tls.key_file)
}

fn of_file(file: &Path, is_secret: bool) -> Option<Finding> {
    let shown = file.display();
    let found = match file.metadata() {
        Err(error) => Some(Finding::failed(format!("cannot be looked at: {error}"), "see that it is there")),
        Ok(_) if access(file, Access::READ_OK).is_err() => Some(Finding::failed(
            "cannot be read by this user",
            format!("chown it to this user, then {FILE_MODE} {shown}"),
        )),
        Ok(data) if has(&data, OTHERS_WRITE) => {
            Some(Finding::failed("everybody on this machine may change it", format!("chmod o-w {shown}")))
        }
        Ok(data) if is_secret && has(&data, OTHERS_READ) => Some(Finding::failed(
            "holds secrets, and everybody on this machine may read it",
            format!("{FILE_MODE} {shown}"),
        )),
        Ok(_) => None,
    };
    found.map(|found| found.about(shown.to_string()))
}

fn unwritable(file: &Path) -> Option<Finding> {
    let found = Finding::failed("cannot be written by this user", "chown it to this user");
    access(file, Access::WRITE_OK).is_err().then(|| found.about(file.display().to_string()))
}

fn of_folder(folder: &Path) -> Option<Finding> {
    let shown = folder.display();
    // One that is missing is made in the nearest that is there.
    let there = folder.ancestors().find(|folder| folder.exists()).filter(|there| !there.as_os_str().is_empty());
    let there = there.unwrap_or(Path::new("."));
    let found = match there.metadata() {
        Err(error) => Finding::failed(format!("cannot be looked at: {error}"), "see that it is there"),
        Ok(data) if !data.is_dir() => Finding::failed("is no folder", "name another one, or move the file away"),
        Ok(_) if access(there, Access::WRITE_OK | Access::EXEC_OK).is_err() => {
            let what = if there == folder { "cannot be written by this user" } else { "cannot be made by this user" };
            Finding::failed(what, format!("make {} and chown it to this user, or name another folder", shown))
        }
        Ok(data) if there == folder && has(&data, OTHERS_WRITE) => {
            Finding::failed("everybody on this machine may change what is kept there", format!("{FOLDER_MODE} {shown}"))
        }
        Ok(_) => return None,
    };
    Some(found.about(shown.to_string()))
}

fn has(data: &Metadata, bits: u32) -> bool {
    data.mode() & bits != 0
}

/// Whether a `config.yaml` alone sets something that is never printed.
fn holds_secrets(path: &Path) -> bool {
    let Ok(text) = std::fs::read_to_string(path) else { return false };
    let file = Some(File { path: path.to_owned(), text });
    let loaded = settings::load(&Inputs { file, env: &|_| None, flags: Vec::new() });
    serde_json::to_value(loaded.settings).is_ok_and(|settings| has_mask(&settings))
}

fn has_mask(value: &Value) -> bool {
    match value {
        Value::String(text) => text == MASK,
        Value::Array(items) => items.iter().any(has_mask),
        Value::Object(members) => members.values().any(has_mask),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::commands::doctor::finding::State;

    fn with_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn secrets_that_everybody_may_read_and_files_that_everybody_may_change_are_told() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("f");
        fs::write(&file, "x").unwrap();
        for (mode, is_secret, expected) in [
            (0o600, true, None),
            (0o640, true, None),
            (0o644, true, Some("chmod 600")),
            (0o644, false, None),
            (0o646, false, Some("chmod o-w")),
        ] {
            with_mode(&file, mode);
            let found = of_file(&file, is_secret);
            assert_eq!(found.is_some(), expected.is_some(), "{mode:o}");
            assert!(expected.is_none_or(|mend| found.unwrap().mend.unwrap().starts_with(mend)), "{mode:o}");
        }
        assert_eq!(of_file(&home.path().join("none"), false).unwrap().state, State::Failed);
    }

    #[test]
    fn a_folder_is_this_users_or_can_be_made() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("data");
        assert_eq!(of_folder(&folder), None, "it can be made");
        fs::create_dir(&folder).unwrap();
        assert_eq!(of_folder(&folder), None);
        with_mode(&folder, 0o777);
        assert!(of_folder(&folder).unwrap().mend.unwrap().starts_with(FOLDER_MODE));
        fs::write(home.path().join("file"), "").unwrap();
        assert!(of_folder(&home.path().join("file/data")).is_some());
    }

    #[test]
    fn settings_with_secrets_are_told_from_others() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("config.yaml");
        let holds = |text: &str| {
            fs::write(&file, text).unwrap();
            holds_secrets(&file)
        };
        assert!(!holds("log: {level: warn}\n"));
        assert!(holds("cluster: {secret: 0123456789abcdef0123456789abcdef}\n"));
        assert!(holds("redis: {url: 'redis://:hunter2@cache/'}\n"));
    }
}
