//! GET /api/replicas

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use caribou_runtime::ReplicaStatus;
use serde::Serialize;
use utoipa::ToSchema;

use crate::elapsed::milliseconds;
use crate::identity::Identified;
use crate::openapi::FaultProblem;
use crate::problem::{Problem, ProblemBody};
use crate::router::Replica;

/// The replicas that share a database, the youngest first.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"replicas": [{
    "boot": "0198f3c2-7b2c-7d4f-8e30-6c9f8b2d5e71",
    "host": "caribou-0",
    "version": "0.1.0",
    "address": "10.0.0.7:8751",
    "is_this": true,
    "is_alive": true,
    "is_draining": false,
    "load": 0.25,
    "age_ms": 73042
}]}))]
struct ReplicaList<'l> {
    /// The replicas.
    replicas: Vec<ReplicaEntry<'l>>,
}

/// One life of one replica.
#[derive(Serialize, ToSchema)]
struct ReplicaEntry<'l> {
    /// Names this life; each start is another one.
    boot: &'l str,
    /// The name of its machine or pod.
    host: &'l str,
    /// The version of Caribou.
    version: &'l str,
    /// Where the others reach it; null = they do not.
    #[schema(required = true)]
    address: Option<&'l str>,
    /// Whether it is the one that answers.
    is_this: bool,
    /// Whether its lease holds.
    is_alive: bool,
    /// Whether it hands over what it has, before it stops.
    is_draining: bool,
    /// The part of its sessions that is in use, 0 to 1.
    load: f32,
    /// Since it began.
    age_ms: u64,
}

impl<'l> From<&'l ReplicaStatus> for ReplicaEntry<'l> {
    fn from(replica: &'l ReplicaStatus) -> Self {
        Self {
            boot: replica.boot.as_str(),
            host: &replica.host,
            version: &replica.version,
            address: replica.address.as_deref(),
            is_this: replica.is_this,
            is_alive: replica.is_alive,
            is_draining: replica.is_draining,
            load: replica.load,
            age_ms: milliseconds(replica.age),
        }
    }
}

/// Lists the replicas that share the work.
///
/// As they were a moment ago. One that was killed is listed until the others have noticed. Only for admins.
#[utoipa::path(
    get,
    path = "/api/replicas",
    tag = "operation",
    responses(
        (status = 200, description = "The replicas", body = ReplicaList<'static>),
        (status = 403, description = "`denied`: the caller is no admin", body = ProblemBody<'static>),
        (status = 503, description = "`unavailable`: not known yet; ask again", body = ProblemBody<'static>),
        FaultProblem,
    ),
)]
pub(crate) async fn list_replicas(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
) -> Result<Response, Problem> {
    let replicas = replica.runtime.replicas(&caller).await?;
    Ok(Json(ReplicaList { replicas: replicas.iter().map(ReplicaEntry::from).collect() }).into_response())
}
