//! What a document that is put in force says about itself, to the log.
//!
//! Loud where a server is left out, and each thing once: an edit does not repeat what was told of the document before.
//! Problems hold no value of the document (invariant O3).

use caribou_core::config::{Document, Problem, Severity};

/// Logs the problems of `document` that `before` did not have.
pub(super) fn tell(document: &Document, before: &[Problem]) {
    // Lines move with every edit; the place in the document and what is wrong there do not.
    let is_known = |problem: &Problem| before.iter().any(|old| old.path == problem.path && old.what == problem.what);
    let news: Vec<&Problem> = document.problems.iter().filter(|problem| !is_known(problem)).collect();
    for problem in &news {
        match problem.severity {
            Severity::Error => tracing::error!("{problem}"),
            Severity::Warning => tracing::warn!("{problem}"),
            Severity::Note => tracing::info!("{problem}"),
        }
    }
    if news.iter().any(|problem| problem.severity == Severity::Error) {
        for server in document.servers.iter().filter(|server| server.config.is_err()) {
            tracing::error!(server = %server.name, "this server is left out until its configuration is mended");
        }
    }
}
