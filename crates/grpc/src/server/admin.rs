//! `caribou.v1.AdminService`: the rules of the same routes over REST, on this door.
//!
//! Each method: who calls, one verb. What is begun is done to its end, whether or not its caller waits.

use caribou_core::config::IfMatch;
use caribou_core::failure::Code;
use caribou_proto::v1;
use caribou_proto::v1::admin_service_server::AdminService;
use caribou_runtime::{Caller, ConfigChange, ReplicaStatus, Runtime, VerbError};
use tonic::{Request, Response, Status};

use super::named::request_id;
use crate::{convert, deadline, identity, status};

/// What one replica lets its admins do.
pub(super) struct Admin {
    pub(super) runtime: Runtime,
}

impl Admin {
    /// Does what a request asks for in the name of its caller, as long as that one waits.
    async fn run<T: Sync, R>(
        &self,
        request: &Request<T>,
        work: impl AsyncFnOnce(&Caller) -> Result<R, VerbError>,
    ) -> Result<Response<R>, Status> {
        let bound = deadline::of(request.metadata())?;
        let working = async {
            let caller = identity::caller(&self.runtime, request.metadata(), &request_id(request)).await?;
            work(&caller).await.map_err(status::of)
        };
        deadline::within(bound, working).await.map(Response::new)
    }

    /// The replicas; none to callers that are no admins.
    async fn replicas(&self, caller: &Caller) -> Result<Vec<ReplicaStatus>, VerbError> {
        match self.runtime.replicas(caller).await {
            Err(VerbError { code: Code::Denied, .. }) => Ok(Vec::new()),
            replicas => replicas,
        }
    }
}

#[tonic::async_trait]
impl AdminService for Admin {
    async fn status(&self, request: Request<v1::StatusRequest>) -> Result<Response<v1::StatusResponse>, Status> {
        self.run(&request, async |caller| {
            let replicas = self.replicas(caller).await?;
            let (servers, sessions) = (self.runtime.servers(caller).await, self.runtime.sessions(caller).await);
            Ok(v1::StatusResponse {
                replica: self.runtime.boot().to_string(),
                replicas: replicas.into_iter().map(convert::replica).collect(),
                servers: servers.into_iter().map(convert::server).collect(),
                sessions: sessions.into_iter().map(convert::session).collect(),
            })
        })
        .await
    }

    async fn reset(&self, request: Request<v1::ResetRequest>) -> Result<Response<v1::ResetResponse>, Status> {
        self.run(&request, async |caller| Ok(convert::reset(self.runtime.reset(caller).await?))).await
    }

    async fn get_config(&self, request: Request<v1::GetConfigRequest>) -> Result<Response<v1::Config>, Status> {
        self.run(&request, async |caller| Ok(convert::config(self.runtime.read_config(caller).await?))).await
    }

    async fn put_config(&self, request: Request<v1::PutConfigRequest>) -> Result<Response<v1::Config>, Status> {
        self.run(&request, async |caller| {
            // Whether the caller may comes before whether it writes well, as over REST.
            caller.principal.administers()?;
            let asked = request.get_ref();
            let condition = match asked.etag.is_empty() {
                true => IfMatch::Unconditional,
                false => IfMatch::parse(&asked.etag),
            };
            let change = ConfigChange::ReplaceAll(convert::written(&asked.servers)?);
            Ok(convert::config(self.runtime.change_config(caller, change, condition).await?))
        })
        .await
    }
}
