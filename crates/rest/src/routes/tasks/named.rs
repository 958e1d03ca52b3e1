//! Which thread a path names, and which task of it.
//!
//! Whether there is such a task is the runtime's to say.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use caribou_core::ids::Scope;
use caribou_runtime::Caller;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::identity::Identified;
use crate::problem::Problem;
use crate::scope::scope;

/// The thread that the path names, of the user that the query names.
pub(crate) struct NamedThread {
    pub(super) caller: Caller,
    pub(super) scope: Scope,
}

/// One task of that thread.
pub(crate) struct NamedTask {
    pub(super) caller: Caller,
    pub(super) scope: Scope,
    /// As the caller wrote it.
    pub(super) task: String,
}

/// Whose thread it is. Other parameters are the route's.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Whose {
    /// The user whose thread it is; absent or empty: the caller's own.
    #[param(max_length = 256, example = "ann")]
    user_id: Option<String>,
}

#[derive(Deserialize)]
struct InPath {
    thread_id: String,
    task_id: Option<String>,
}

async fn named<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<(NamedThread, Option<String>), Problem> {
    let Identified(caller) = Identified::from_request_parts(parts, state).await?;
    let path = Path::<InPath>::from_request_parts(parts, state).await;
    let Path(InPath { thread_id, task_id }) = path.map_err(|_| Problem::invalid("the path is not valid UTF-8"))?;
    let whose = Query::<Whose>::try_from_uri(&parts.uri);
    let Query(Whose { user_id }) =
        whose.map_err(|_| Problem::invalid("the query may hold `user_id` once, percent-encoded"))?;
    let scope = scope(&caller, user_id.as_deref(), Some(&thread_id))?;
    Ok((NamedThread { caller, scope }, task_id))
}

impl<S: Send + Sync> FromRequestParts<S> for NamedThread {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        named(parts, state).await.map(|(thread, _)| thread)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for NamedTask {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (NamedThread { caller, scope }, task) = named(parts, state).await?;
        // Absent only in a route without a task, which asks for none.
        let task = task.ok_or_else(Problem::bug)?;
        Ok(Self { caller, scope, task })
    }
}
