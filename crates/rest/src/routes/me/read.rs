//! GET /api/me

use axum::Json;
use axum::response::{IntoResponse, Response};
use caribou_core::identity::{Role, Roles};
use serde::Serialize;
use utoipa::ToSchema;

use crate::identity::Identified;
use crate::openapi::FaultProblem;
use crate::problem::Problem;

/// The caller, as its credential says.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"principal": "local", "user_id": "default", "roles": ["admin", "agent", "user"]}))]
pub(crate) struct Me<'m> {
    /// Names the caller in the audit log: the id of a key, the subject of a token, or `local` while callers are not told
    /// apart.
    principal: &'m str,
    /// The user it acts for when a request names none.
    user_id: &'m str,
    /// What it may do beside using its own threads: `admin` changes the configuration, resets and sees everything,
    /// `agent` acts for any user. `user` is always among them.
    #[schema(value_type = Vec<String>, example = json!(["admin", "user"]))]
    roles: Vec<Role>,
}

/// Says who the caller is, and what it may do.
#[utoipa::path(
    get,
    path = "/api/me",
    tag = "identity",
    responses((status = 200, description = "The caller", body = Me<'static>), FaultProblem),
)]
pub(crate) async fn read_me(Identified(caller): Identified) -> Result<Response, Problem> {
    let principal = &caller.principal;
    let roles = Role::ALL.into_iter().filter(|role| has(principal.roles, *role)).collect();
    Ok(Json(Me { principal: &principal.id, user_id: principal.user.as_str(), roles }).into_response())
}

fn has(roles: Roles, role: Role) -> bool {
    match role {
        Role::Admin => roles.admin,
        Role::Agent => roles.agent,
        Role::User => true,
    }
}
