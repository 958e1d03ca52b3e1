//! The document that names the servers: found, read where it is kept, and judged. What stands in a database is only
//! read: a document that would be taken from the file at the first start stays where it is.

use std::path::PathBuf;
use std::sync::Arc;

use caribou_core::config::{self, Document, ServerConfig, Severity, Source};
use caribou_store::SqlStore;

use super::finding::Finding;
use super::ground::Ground;
use crate::settings::{AuthMode, ConfigOrigin, Settings};
use crate::{assemble, followed, tasks};

/// The document as it is kept.
#[derive(Clone)]
pub(super) struct Kept {
    /// What it says.
    pub(super) document: Document,
    /// The file it stands in; `None` = it is in the database.
    pub(super) file: Option<PathBuf>,
    /// Whether secrets themselves stand in it, rather than the names of variables.
    pub(super) holds_secrets: bool,
}

/// What is said of it, and the document if there is one that can be used.
pub(super) type Read = (Vec<Finding>, Option<Kept>);

/// The settings that say where it is.
pub(super) const SETTINGS: [&str; 3] = ["extensions_config_path", "config", "interceptors"];

pub(super) async fn check(ground: &Ground, store: Option<&SqlStore>) -> Read {
    if let Some(spoiled) = ground.spoiled(&SETTINGS) {
        return (vec![spoiled], None);
    }
    let settings = &ground.settings;
    let text = match settings.config.source {
        ConfigOrigin::File => of_file(settings),
        ConfigOrigin::Database => of_database(store).await,
    };
    match text {
        Ok(Some((file, text))) => judged(settings, file, &text),
        Ok(None) => {
            let mend = "`caribou config init` writes one, and `--extensions` names one that is elsewhere";
            (vec![Finding::warning("nothing names any servers", mend)], None)
        }
        Err(finding) => (vec![finding], None),
    }
}

type Text = Option<(PathBuf, Vec<u8>)>;

fn of_file(settings: &Settings) -> Result<Text, Finding> {
    match assemble::find_servers(settings) {
        Ok(found) => Ok(found.map(|found| {
            let Source { file, text } = found.source();
            (file.to_owned(), text.to_owned())
        })),
        Err(error) => Err(Finding::failed(format!("{error:#}"), "see that the file is there and can be read")),
    }
}

async fn of_database(store: Option<&SqlStore>) -> Result<Text, Finding> {
    let Some(store) = store else {
        return Err(Finding::skipped("it is in the database (`config.source: database`), which cannot be asked", None));
    };
    match followed::kept_in(store).await {
        Ok(text) => Ok(text.map(|text| (text.file, text.text))),
        Err(error) => Err(Finding::failed(format!("{error:#}"), "see that the database answers")),
    }
}

fn judged(settings: &Settings, file: PathBuf, text: &[u8]) -> Read {
    let source = Source { file: &file, text };
    let (document, problems) = match assemble::understand(settings, &source) {
        Ok(document) => {
            let problems = document.problems.clone();
            (Some(document), problems)
        }
        Err(problems) => (None, problems),
    };
    let mut found: Vec<Finding> = problems.iter().filter_map(told).collect();
    if let Some(document) = &document {
        found.extend(tasks::demand(settings, document).err().map(|error| {
            Finding::failed(error.to_string(), "set what is named, or take `task_toolsets` out of these servers")
        }));
        found.extend(unasked_scopes(settings, document));
        let enabled = document.servers.iter().filter(|entry| entry.config.as_ref().is_ok_and(|one| one.enabled));
        let count = enabled.count();
        found.insert(0, Finding::ok(format!("{}: {count} servers to serve", file.display())));
    }
    let holds_secrets = config::holds_secrets(&source);
    let file = (settings.config.source == ConfigOrigin::File).then(|| file.clone());
    (found, document.map(|document| Kept { document, file, holds_secrets }))
}

/// Servers that require scopes of callers who have none to show.
fn unasked_scopes(settings: &Settings, document: &Document) -> Vec<Finding> {
    if settings.auth.mode == AuthMode::Jwt {
        return Vec::new();
    }
    let enabled = document.servers.iter().filter_map(|entry| entry.config.as_ref().ok()).filter(|one| one.enabled);
    let requiring = enabled.filter(|server| server.all_scopes().next().is_some());
    let warn = |server: &Arc<ServerConfig>| {
        let what = "`required_scopes` keep nobody out: only tokens have scopes, and `auth.mode` is not `jwt`";
        let mend = "set `auth.mode: jwt`, or narrow each key by the tools it may use: `caribou keys create --allow`";
        Finding::warning(what, mend).about(server.name.as_str())
    };
    requiring.map(warn).collect()
}

/// A problem as a finding; that nothing reads a key is not one.
fn told(problem: &config::Problem) -> Option<Finding> {
    let config::Problem { severity, file, line, column, path, what, mend } = problem;
    let what = format!("{file}:{line}:{column}: {path}: {what}");
    match severity {
        Severity::Error => Some(Finding::failed(what, mend.clone())),
        Severity::Warning => Some(Finding::warning(what, mend.clone())),
        Severity::Note => None,
    }
}
