//! What the configuration routes answer with: the servers as they are stored then, or why they are not.
//!
//! Owns the statuses of contract 2.2, which tell a request that is wrong in itself (422) from one that means something
//! we will not store (400). Every answer carries the tag of what is stored in `ETag`, refusals too, so that a client
//! may look and try again without another request.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use caribou_core::config::{ETag, IfMatch};
use caribou_core::failure::Code;
use caribou_runtime::{Caller, ConfigChange, ConfigView, Runtime, VerbError};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::{IntoResponses, ToSchema};

use crate::openapi::{Meanings, problems};
use crate::problem::Problem;

/// What a failed write is said to be (contract 2.2).
pub(super) const NOT_UPDATED: &str = "Failed to update MCP configuration";

/// The same for one server's switch.
pub(super) const NOT_SWITCHED: &str = "Failed to update MCP server state";

/// The stored servers.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"mcp_servers": {"github": {
    "enabled": true,
    "type": "stdio",
    "command": "npx",
    "args": ["-y", "@modelcontextprotocol/server-github"],
    "env": {"GITHUB_TOKEN": "***"},
    "description": ""
}}}))]
pub(crate) struct StoredServers {
    /// Each server by its name, in document order, with every field filled in. Secrets are `***` or null; sent back
    /// so, they are kept. References such as `$GITHUB_TOKEN` stand as they are written.
    #[schema(value_type = Object)]
    mcp_servers: Map<String, Value>,
    /// Task servers that are other ones in this replica than in what is stored, until it is restarted. Absent when
    /// there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending_restart: Vec<String>,
}

impl IntoResponse for StoredServers {
    fn into_response(self) -> Response {
        Json(self).into_response()
    }
}

/// What is stored, with its tag.
pub(super) fn stored(view: ConfigView) -> Response {
    let pending_restart = view.pending_restart.iter().map(ToString::to_string).collect();
    tagged(StoredServers { mcp_servers: view.servers, pending_restart }.into_response(), view.etag)
}

/// Makes a change and answers with what is stored then, or with why not; `failed` opens the text of a failure of ours.
pub(super) async fn changed(
    runtime: &Runtime,
    caller: &Caller,
    change: ConfigChange,
    condition: IfMatch,
    failed: &str,
) -> Response {
    let changed = runtime.change_config(caller, change, condition).await;
    answered(runtime, caller, changed, failed).await
}

/// What came of a change; `failed` opens the text of a failure of ours.
pub(super) async fn answered(
    runtime: &Runtime,
    caller: &Caller,
    changed: Result<ConfigView, VerbError>,
    failed: &str,
) -> Response {
    match changed {
        Ok(view) => stored(view),
        Err(error) => {
            let tag = runtime.read_config(caller).await.ok().and_then(|view| view.etag);
            tagged(not_changed(error, failed).into_response(), tag)
        }
    }
}

/// What cannot be shown is malformed (400); everything else is told as ever.
pub(super) fn not_read(error: VerbError) -> Problem {
    match error.code {
        Code::Invalid => Problem::new(StatusCode::BAD_REQUEST, error.code, error.detail),
        _ => error.into(),
    }
}

/// The detail tells apart whether nothing was written, nobody knows, or it was written and is not in force.
fn not_changed(error: VerbError, failed: &str) -> Problem {
    match error.code {
        Code::Invalid => not_read(error),
        Code::NotFound | Code::Conflict | Code::Denied => error.into(),
        code => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, code, format!("{failed}: {}", error.detail)),
    }
}

fn tagged(mut response: Response, tag: Option<ETag>) -> Response {
    if let Some(tag) = tag.and_then(|tag| HeaderValue::from_str(&tag.to_string()).ok()) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// Failures of reading what is stored.
pub(super) struct ReadProblems;

impl IntoResponses for ReadProblems {
    fn responses() -> Meanings {
        problems(&[
            ("403", "`denied`: the caller is no admin"),
            ("400", "`invalid`: what is stored is no configuration; `detail` names line and column"),
            ("500", "A fault of Caribou; its log says more under the same request id"),
            ("503", "`unavailable`: the file cannot be read, or this replica follows none"),
            ("504", "`timeout`: other changes or the disk take too long"),
        ])
    }
}

/// Failures of every change.
pub(super) struct ChangeProblems;

impl IntoResponses for ChangeProblems {
    fn responses() -> Meanings {
        problems(&[
            (
                "400",
                "`invalid`: the body is no JSON; or the change would not load, may not be started, or holds a mask that \
                 stands for nothing; or what is stored is no configuration. Nothing was written",
            ),
            ("403", "`denied`: the caller is no admin. Nothing was written"),
            (
                "409",
                "`conflict`: `If-Match` does not name what is stored (`ETag` does), the name is taken, or the file is \
                 read-only. Nothing was written",
            ),
            (
                "500",
                "`unavailable`: nothing was written; `outcome_unknown`: it may have been; `config_changed`: it was, and \
                 `detail` says whether it is in force",
            ),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: Code) -> StatusCode {
        not_changed(VerbError::new(code, "why"), NOT_UPDATED).into_response().status()
    }

    #[test]
    fn refusals_have_the_statuses_of_the_contract() {
        // Contract 2.2 and 5.9.
        for (code, status) in [
            (Code::Invalid, 400),
            (Code::NotFound, 404),
            (Code::Denied, 403),
            (Code::Conflict, 409),
            (Code::Unavailable, 500),
            (Code::OutcomeUnknown, 500),
            (Code::ConfigChanged, 500),
        ] {
            assert_eq!(self::status(code).as_u16(), status, "{code}");
        }
    }

    #[test]
    fn a_failure_of_ours_opens_with_what_failed() {
        let id = caribou_core::ids::RequestId::new("r");
        let problem = not_changed(VerbError::new(Code::OutcomeUnknown, "who knows"), NOT_SWITCHED);
        let body = serde_json::to_value(problem.body(&id)).unwrap();
        assert_eq!(body["detail"], "Failed to update MCP server state: who knows");
        assert_eq!(body["code"], "outcome_unknown");
    }
}
