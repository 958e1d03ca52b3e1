//! The files of the pages, and the headers they are served with.
//!
//! All are built into the binary, so that a page and the routes it reads are of one version. Whoever switched the
//! console off reads how to switch it on.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use caribou_core::failure::Code;

use crate::problem::Problem;
use crate::router::Replica;

/// Where the pages are.
const PAGE: &str = "/console";

/// What a browser may do with a page: run and show what comes from here and nothing else, talk to this replica alone,
/// and never put it into a frame, where a click may be stolen. No text becomes markup or script by accident
/// (trusted types, with no policy that could make any).
const CONTENT_POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    object-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// One file.
struct File {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// The one document; its scripts make the pages.
const INDEX: File = File { name: "", kind: HTML, text: include_str!("assets/index.html") };

macro_rules! files {
    ($($kind:ident $name:literal)*) => {
        [$(File { name: $name, kind: $kind, text: include_str!(concat!("assets/", $name)) }),*]
    };
}

/// What it brings along.
static FILES: [File; 23] = files! {
    SVG "mark.svg"
    CSS "look.css"
    CSS "controls.css"
    SCRIPT "main.js"
    SCRIPT "api.js"
    SCRIPT "ask.js"
    SCRIPT "credential.js"
    SCRIPT "dom.js"
    SCRIPT "form.js"
    SCRIPT "json.js"
    SCRIPT "live.js"
    SCRIPT "table.js"
    SCRIPT "words.js"
    SCRIPT "overview.js"
    SCRIPT "servers.js"
    SCRIPT "tools.js"
    SCRIPT "try.js"
    SCRIPT "sessions.js"
    SCRIPT "tasks.js"
    SCRIPT "task.js"
    SCRIPT "chains.js"
    SCRIPT "audit.js"
    SCRIPT "configuration.js"
};

/// Whether `path` is that of a file, which asks for nobody.
pub(crate) fn is_file(path: &str) -> bool {
    path.strip_prefix(PAGE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The routes of the files.
pub(crate) fn routes() -> Router<Arc<Replica>> {
    Router::new()
        .route(PAGE, get(page))
        // Addresses in the document count from `/`, so that a proxy may put a path in front of all of it.
        .route("/console/", get(async || Redirect::permanent("../console")))
        .route("/console/{name}", get(named))
}

async fn page(State(replica): State<Arc<Replica>>) -> Result<Response, Problem> {
    served(&replica, &INDEX)
}

async fn named(State(replica): State<Arc<Replica>>, Path(name): Path<String>) -> Result<Response, Problem> {
    let file = FILES.iter().find(|file| file.name == name);
    let missing = || Problem::new(StatusCode::NOT_FOUND, Code::NotFound, "the console has no such file; see /console");
    served(&replica, file.ok_or_else(missing)?)
}

fn served(replica: &Replica, file: &File) -> Result<Response, Problem> {
    demand_console(replica)?;
    let headers = [
        (header::CONTENT_TYPE, file.kind),
        (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // After an update nobody may run pages of the old version against routes of the new one.
        (header::CACHE_CONTROL, "no-cache"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    Ok((headers, file.text).into_response())
}

/// Refuses when the console is switched off.
pub(super) fn demand_console(replica: &Replica) -> Result<(), Problem> {
    if replica.options.console {
        return Ok(());
    }
    let detail = "the console is switched off here; `console.enabled: true` switches it on";
    Err(Problem::new(StatusCode::NOT_FOUND, Code::NotFound, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_page_and_what_lies_below_it_are_files() {
        for path in ["/console", "/console/", "/console/main.js", "/console/none"] {
            assert!(is_file(path), "{path}");
        }
        for path in ["/api/console/events", "/consoles", "/", "/api/me"] {
            assert!(!is_file(path), "{path}");
        }
    }

    #[test]
    fn every_file_is_asked_for_by_another_one_and_none_is_missing() {
        let asked: Vec<&str> = FILES.iter().chain([&INDEX]).flat_map(|file| asked_for(file.text)).collect();
        for file in &FILES {
            assert!(asked.contains(&file.name), "nobody asks for {}", file.name);
        }
        for name in asked {
            assert!(FILES.iter().any(|file| file.name == name), "there is no {name}");
        }
    }

    /// The names after `"./` of modules and after `"console/` of the document.
    fn asked_for(text: &str) -> impl Iterator<Item = &str> {
        let starts = ["\"./", "\"console/"];
        let rests = starts.into_iter().flat_map(move |start| text.split(start).skip(1));
        rests.filter_map(|rest| rest.split('"').next())
    }

    #[test]
    fn pages_are_made_of_elements_and_never_of_text() {
        for file in FILES.iter().chain([&INDEX]) {
            for way in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "style=\"", "onclick="]
            {
                assert!(!file.text.contains(way), "{} holds {way}", file.name);
            }
            let away = |part: &&str| !part.starts_with("www.w3.org/");
            assert_eq!(file.text.split("http://").skip(1).find(away), None, "{} leads away", file.name);
            assert!(!file.text.contains("https://"), "{} leads away", file.name);
            assert!(file.text.lines().count() <= 400, "{} is too long", file.name);
        }
    }
}
