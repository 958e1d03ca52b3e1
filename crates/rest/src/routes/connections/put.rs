//! PUT /api/users/{user_id}/mcp/connections/{name}

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::answer::{ChangeProblems, Connection, ReadProblems, named, shown};
use crate::body::JsonBody;
use crate::identity::Identified;
use crate::openapi::BodyProblems;
use crate::problem::Problem;
use crate::router::Replica;
use crate::routes::config::Condition;

/// A server in the form of an entry of `mcpServers`, read literally: `$NAME` in it is text. At most 64 KiB.
#[derive(Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = Object, example = json!({
    "type": "http", "url": "https://mcp.example.org/", "headers": {"Authorization": "Bearer ..."}
}))]
pub(crate) struct Definition(Map<String, Value>);

/// Makes or replaces a server of a user's own.
///
/// Whole: a field that is left out is reset, and only a secret sent as it was shown is kept. It is in force when this
/// answers, a second later on other replicas. Sessions under another definition are closed.
#[utoipa::path(
    put,
    path = "/api/users/{user_id}/mcp/connections/{name}",
    tag = "personal connections",
    params(
        ("user_id" = String, Path, description = "The user", max_length = 256, example = "ann"),
        ("name" = String, Path, description = "What the user calls it", pattern = "^[A-Za-z0-9_-]{1,64}$", example = "github"),
        Condition,
    ),
    request_body = Definition,
    responses(
        (status = 200, description = "The connection as it is stored now", body = Connection,
            headers(("ETag" = String, description = "Names what is stored"))),
        BodyProblems,
        ReadProblems,
        ChangeProblems,
    ),
)]
pub(crate) async fn put_connection(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    path: Result<Path<(String, String)>, PathRejection>,
    Condition(condition): Condition,
    JsonBody(Definition(definition)): JsonBody<Definition>,
) -> Result<Response, Problem> {
    let (user, name) = named(&caller, path)?;
    Ok(shown(replica.runtime.put_personal_connection(&caller, &user, &name, definition, condition).await?))
}
