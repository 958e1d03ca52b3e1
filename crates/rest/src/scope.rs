//! For whom a request is made: user and thread as callers may write them.
//!
//! Whether the caller may act for that user is core's to say. A user that is absent or empty is the caller's own; such a
//! thread is `default` (contract 4.1).

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use caribou_core::ids::Scope;
use caribou_runtime::Caller;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::identity::Identified;
use crate::problem::Problem;

/// The scope of these two for `caller`.
///
/// # Errors
/// 422 when one of them is no part of a scope, 403 when the caller may not act for that user.
pub(crate) fn scope(caller: &Caller, user: Option<&str>, thread: Option<&str>) -> Result<Scope, Problem> {
    Ok(caller.scope(user, thread)?)
}

/// The parameters that name a scope. Any other is refused: a misspelt `thread_id` would mean another thread.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ScopeParameters {
    /// The user; absent or empty: the caller's own, which is `default` while identity is off.
    #[param(max_length = 256, example = "ann")]
    user_id: Option<String>,
    /// The thread; absent or empty: `default`.
    #[param(pattern = "^[A-Za-z0-9_-]{0,64}$", example = "thread-1")]
    thread_id: Option<String>,
}

/// The scope that the query names.
pub(crate) struct QueriedScope(pub(crate) Scope);

impl<S: Sync> FromRequestParts<S> for QueriedScope {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Identified(caller) = Identified::from_request_parts(parts, state).await?;
        let Query(named) = Query::<ScopeParameters>::try_from_uri(&parts.uri).map_err(|_| {
            let detail = "the query may hold `user_id` and `thread_id`, each at most once and percent-encoded";
            Problem::invalid(detail)
        })?;
        scope(&caller, named.user_id.as_deref(), named.thread_id.as_deref()).map(Self)
    }
}
