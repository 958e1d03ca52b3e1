//! GET /api/mcp/oauth

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use caribou_runtime::ChainView;
use serde::Serialize;
use utoipa::ToSchema;

use crate::identity::Identified;
use crate::openapi::FaultProblem;
use crate::problem::{Problem, ProblemBody};
use crate::router::Replica;

/// The stored chains of refresh tokens.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"chains": [{
    "server": "shop",
    "state": "idle",
    "generation": 12,
    "access_expires_in_ms": 1_800_000,
    "rotates": true,
    "failures": 0,
    "last_error": null,
    "next_try_ms": null,
    "holder": null,
    "changed_at_ms": 1_790_000_000_000_i64
}]}))]
struct Chains {
    /// By server.
    chains: Vec<Chain>,
}

/// One chain.
#[derive(Serialize, ToSchema)]
struct Chain {
    /// The server, or the runtime name of a personal connection.
    server: String,
    /// `idle`; `refreshing`; `unknown`: an answer is lost, and the token is presented once more when that is safe;
    /// `reauth_needed`: a person must configure another refresh token.
    state: &'static str,
    /// Grows with each token that took the place of another.
    generation: u64,
    /// How long the access token lives; null when there is none, or it has expired.
    #[schema(required = true)]
    access_expires_in_ms: Option<u64>,
    /// Whether the provider was seen to rotate its refresh tokens.
    rotates: bool,
    /// Failed refreshes in a row.
    failures: u32,
    /// The last failure.
    #[schema(required = true)]
    last_error: Option<String>,
    /// When it may be tried again; null when it may be now.
    #[schema(required = true)]
    next_try_ms: Option<u64>,
    /// The replica that refreshes it.
    #[schema(required = true)]
    holder: Option<String>,
    /// When it last changed, in milliseconds of the Unix epoch.
    changed_at_ms: i64,
}

impl From<ChainView> for Chain {
    fn from(view: ChainView) -> Self {
        let ms = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self {
            server: view.server.to_string(),
            state: view.state,
            generation: view.generation,
            access_expires_in_ms: view.access_left.map(ms),
            rotates: view.rotates,
            failures: view.failures,
            last_error: view.last_error,
            next_try_ms: view.next_try.map(ms),
            holder: view.holder.map(|boot| boot.to_string()),
            changed_at_ms: view.changed_at_us / 1_000,
        }
    }
}

/// Lists the stored chains of refresh tokens, without a token. For admins.
#[utoipa::path(
    get,
    path = "/api/mcp/oauth",
    tag = "oauth",
    responses(
        (status = 200, description = "The chains", body = Chains),
        (status = 403, description = "`denied`: the caller is no admin", body = ProblemBody<'static>),
        (status = 404, description = "`not_found`: this replica stores none", body = ProblemBody<'static>),
        (status = 503, description = "`unavailable`: the store cannot be asked now", body = ProblemBody<'static>),
        FaultProblem,
    ),
)]
pub(crate) async fn list_chains(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
) -> Result<Response, Problem> {
    let chains = replica.runtime.oauth_chains(&caller).await?;
    Ok(Json(Chains { chains: chains.into_iter().map(Chain::from).collect() }).into_response())
}
