//! Puts the services together.

use caribou_core::bounds::MAX_MESSAGE_BYTES;
use caribou_proto::v1::tool_service_server::ToolServiceServer;
use caribou_runtime::Runtime;
use tokio::sync::watch;
use tonic::service::Routes;
use tonic_health::pb::health_server::HealthServer;

use super::health::Readable;
use super::reflection::reflected;
use super::tools::Tools;
use crate::options::GrpcOptions;

/// The largest message of a caller: arguments as large as one MCP message, and room for what stands beside them. What
/// is answered is bounded where it comes from.
const MAX_REQUEST_BYTES: usize = MAX_MESSAGE_BYTES + 1024 * 1024;

/// The largest message to health and reflection: names only.
const MAX_QUESTION_BYTES: usize = 64 * 1024;

/// All services over the verbs of `runtime`. Standing streams end when `stopped` closes.
pub(crate) fn routes(runtime: Runtime, options: &GrpcOptions, stopped: watch::Receiver<()>) -> Routes {
    let tools = ToolServiceServer::new(Tools { runtime }).max_decoding_message_size(MAX_REQUEST_BYTES);
    let health = HealthServer::new(Readable { ready: options.ready.clone(), stopped });
    let routes = Routes::new(tools).add_service(health.max_decoding_message_size(MAX_QUESTION_BYTES));
    reflected(routes, MAX_QUESTION_BYTES).prepare()
}
