//! What the connection routes read and answer with.
//!
//! A definition is shown as the configuration is: every field filled in, secrets masked; sent back so, they are kept.
//! `ETag` names the state that was shown, and `If-Match` demands it.

use axum::Json;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use caribou_core::config::ETag;
use caribou_core::ids::UserId;
use caribou_runtime::{Caller, ConnectionView};
use serde::Serialize;
use serde_json::Value;
use utoipa::{IntoResponses, ToSchema};

use crate::openapi::{Meanings, problems};
use crate::problem::Problem;
use crate::scope::scope;

/// One personal connection.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "name": "github",
    "server": "personal_0f343b0931126a20f133d67c2b018a3b",
    "enabled": true,
    "definition": {"enabled": true, "type": "http", "url": "https://mcp.example.org/", "headers": {"Authorization": "***"}},
    "problem": null
}))]
pub(crate) struct Connection {
    /// What its owner calls it; the names of its tools start with it.
    name: String,
    /// What it is called in lists of tools, sessions and audit rows. Another definition has another one.
    #[schema(value_type = String)]
    server: String,
    /// Whether it takes part.
    enabled: bool,
    /// Its definition, with every field filled in. Secrets are `***` or null; sent back so, they are kept. Null when
    /// what is stored cannot be decrypted.
    #[schema(value_type = Option<Object>)]
    definition: Option<Value>,
    /// Why none of its tools is there although it is enabled; null when nothing is wrong with it.
    problem: Option<String>,
}

impl From<ConnectionView> for Connection {
    fn from(view: ConnectionView) -> Self {
        let ConnectionView { name, runtime_name, enabled, definition, problem, etag: _ } = view;
        Self { name, server: runtime_name.as_str().to_owned(), enabled, definition, problem }
    }
}

/// One connection with its tag.
pub(super) fn shown(view: ConnectionView) -> Response {
    let etag = view.etag;
    tagged(Json(Connection::from(view)).into_response(), etag)
}

pub(super) fn tagged(mut response: Response, tag: ETag) -> Response {
    if let Ok(tag) = HeaderValue::from_str(&tag.to_string()) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// The user and the connection that a path names.
pub(super) fn named(
    caller: &Caller,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<(UserId, String), Problem> {
    let Path((user, name)) = path.map_err(|_| Problem::invalid("the path is not valid UTF-8"))?;
    Ok((scope(caller, Some(&user), None)?.user, name))
}

/// Failures of reading.
pub(super) struct ReadProblems;

impl IntoResponses for ReadProblems {
    fn responses() -> Meanings {
        problems(&[
            ("403", "`denied`: the caller may not act for this user"),
            ("500", "A fault of Caribou; its log says more under the same request id"),
            ("503", "`unavailable`: the database cannot be read, or there is none, or no key to encrypt with"),
        ])
    }
}

/// Failures of changing.
pub(super) struct ChangeProblems;

impl IntoResponses for ChangeProblems {
    fn responses() -> Meanings {
        problems(&[
            (
                "409",
                "`conflict`: `If-Match` does not name what is stored, or the user has as many as it may. Nothing was \
                 stored",
            ),
            ("502", "`outcome_unknown`: the connection to the database broke off; it may have been stored"),
        ])
    }
}
