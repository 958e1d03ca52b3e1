//! What the tests of this folder share: one fixed file, one fixed environment. Only built for tests.

use std::path::Path;
use std::sync::Arc;

use super::{Document, Problem, ServerConfig, ServerEntry, Severity, Source, parse};

/// The environment of all tests.
pub(super) fn variable(name: &str) -> Option<String> {
    let value = match name {
        "TOKEN" => "tok-123456",
        "EMPTY" => "",
        "NEWLINE" => "\n",
        "YES" => "true",
        "SECONDS" => "2.5",
        "WORK" => "/srv/work",
        "DOLLAR" => "pa$$TOKEN",
        _ => return None,
    };
    Some(value.to_owned())
}

/// Reads a document that stands in `/etc/caribou/x.json`.
pub(super) fn read(text: &[u8]) -> Result<Document, Vec<Problem>> {
    parse(&Source { file: Path::new("/etc/caribou/x.json"), text }, &variable)
}

/// Reads a document of one server, `a`, whose keys are `body`.
pub(super) fn entry(body: &str) -> (ServerEntry, Vec<Problem>) {
    let mut document = read(format!("{{\"mcpServers\": {{\"a\": {{{body}}}}}}}").as_bytes()).expect(body);
    (document.servers.remove(0), document.problems)
}

/// The server of `body`, which must be without errors.
pub(super) fn good(body: &str) -> Arc<ServerConfig> {
    entry(body).0.config.expect(body)
}

/// Asserts that each body costs its server with a reason that holds the text beside it.
pub(super) fn assert_dropped(table: &[(&str, &str)]) {
    for (body, reason) in table {
        let dropped = entry(body).0.config.expect_err(body);
        assert!(dropped.contains(reason), "{body}: {dropped}");
    }
}

/// Asserts that each body is served, with a warning or note that holds the text beside it.
pub(super) fn assert_warned(table: &[(&str, &str)]) {
    for (body, warning) in table {
        let (entry, problems) = entry(body);
        assert!(entry.config.is_ok(), "{body}: {:?}", entry.config);
        assert!(problems.iter().all(|problem| problem.severity != Severity::Error), "{body}: {problems:#?}");
        assert!(problems.iter().any(|problem| problem.to_string().contains(warning)), "{body}: {problems:#?}");
    }
}

/// Asserts that each body is served and nothing is said about it.
pub(super) fn assert_quiet(bodies: &[&str]) {
    for body in bodies {
        let (entry, problems) = entry(body);
        assert!(entry.config.is_ok() && problems.is_empty(), "{body}: {problems:#?}");
    }
}
