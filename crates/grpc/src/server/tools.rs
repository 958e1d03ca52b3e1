//! `caribou.v1.ToolService`.
//!
//! Each method: who calls, for whom, one verb. A unary call that its caller gives up is dropped, hence cancelled
//! upstream; the caller's `grpc-timeout` bounds each method.

use caribou_proto::v1;
use caribou_proto::v1::tool_service_server::ToolService;
use caribou_runtime::{CallTool, Runtime};
use tonic::{Request, Response, Status};

use super::event_stream::{self, Events};
use super::named::request_id;
use crate::{convert, deadline, identity, status};

/// The tools of one replica.
pub(super) struct Tools {
    pub(super) runtime: Runtime,
}

impl Tools {
    /// The call that a request asks for, in the name of its caller.
    async fn asked(&self, request: Request<v1::CallToolRequest>) -> Result<CallTool, Status> {
        let bound = deadline::of(request.metadata())?;
        let id = request_id(&request);
        let caller = identity::caller(&self.runtime, request.metadata(), &id).await?;
        let request = request.into_inner();
        let scope = identity::scope(&caller, request.scope.as_ref())?;
        convert::into_call(request, caller, scope, bound, id)
    }
}

#[tonic::async_trait]
impl ToolService for Tools {
    type CallToolStreamingStream = Events;

    async fn list_tools(
        &self,
        request: Request<v1::ListToolsRequest>,
    ) -> Result<Response<v1::ListToolsResponse>, Status> {
        let bound = deadline::of(request.metadata())?;
        let listing = async {
            let caller = identity::caller(&self.runtime, request.metadata(), &request_id(&request)).await?;
            let scope = identity::scope(&caller, request.get_ref().scope.as_ref())?;
            self.runtime.list_tools(&caller, &scope).await.map_err(status::of)
        };
        let listed = deadline::within(bound, listing).await?;
        Ok(Response::new(convert::listed(&listed)))
    }

    async fn search_tools(
        &self,
        request: Request<v1::SearchToolsRequest>,
    ) -> Result<Response<v1::SearchToolsResponse>, Status> {
        let bound = deadline::of(request.metadata())?;
        let search = async {
            let caller = identity::caller(&self.runtime, request.metadata(), &request_id(&request)).await?;
            let asked = request.get_ref();
            let scope = identity::scope(&caller, asked.scope.as_ref())?;
            self.runtime.search_tools(&caller, &scope, &asked.query).await.map_err(status::of)
        };
        let found = deadline::within(bound, search).await?;
        Ok(Response::new(convert::found(&found)))
    }

    async fn call_tool(&self, request: Request<v1::CallToolRequest>) -> Result<Response<v1::CallToolResponse>, Status> {
        let call = self.asked(request).await?;
        let id = call.request_id.clone();
        let called = self.runtime.call_tool(call).await.map_err(status::of)?;
        Ok(Response::new(convert::called(&called, &id)))
    }

    async fn call_tool_streaming(&self, request: Request<v1::CallToolRequest>) -> Result<Response<Events>, Status> {
        let call = self.asked(request).await?;
        Ok(Response::new(event_stream::run(self.runtime.clone(), call)))
    }
}
