//! Puts the services together.

use caribou_core::bounds::MAX_MESSAGE_BYTES;
use caribou_proto::v1::admin_service_server::AdminServiceServer;
use caribou_proto::v1::task_service_server::TaskServiceServer;
use caribou_proto::v1::tool_service_server::ToolServiceServer;
use caribou_runtime::Runtime;
use tokio::sync::watch;
use tonic::service::Routes;
use tonic_health::pb::health_server::HealthServer;

use super::admin::Admin;
use super::health::Readable;
use super::reflection::reflected;
use super::tasks::Tasks;
use super::tools::Tools;
use crate::options::GrpcOptions;
use crate::peer::is_exchange;

/// The largest message of a caller: arguments as large as one MCP message, and room for what stands beside them. What
/// is answered is bounded where it comes from.
const MAX_REQUEST_BYTES: usize = MAX_MESSAGE_BYTES + 1024 * 1024;

/// The largest message to health and reflection: names only.
const MAX_QUESTION_BYTES: usize = 64 * 1024;

/// The method whose caller goes on speaking after its first message.
const CONVERSATION: &str = "/caribou.v1.TaskService/Watch";

/// Whether the messages of a request to `path` come for as long as it lasts.
pub(crate) fn is_conversation(path: &str) -> bool {
    path == CONVERSATION || is_exchange(path)
}

/// All services over the verbs of `runtime`. Standing streams end when `stopped` closes.
pub(crate) fn routes(runtime: Runtime, options: &GrpcOptions, stopped: watch::Receiver<()>) -> Routes {
    let tasks = Tasks { runtime: runtime.clone(), patience: options.message_timeout, stopped: stopped.clone() };
    let tasks = TaskServiceServer::new(tasks).max_decoding_message_size(MAX_REQUEST_BYTES);
    let admin = AdminServiceServer::new(Admin { runtime: runtime.clone() });
    let admin = admin.max_decoding_message_size(MAX_REQUEST_BYTES);
    let tools = ToolServiceServer::new(Tools { runtime }).max_decoding_message_size(MAX_REQUEST_BYTES);
    let health = HealthServer::new(Readable { ready: options.ready.clone(), stopped });
    let health = health.max_decoding_message_size(MAX_QUESTION_BYTES);
    let routes = Routes::new(tools).add_service(tasks).add_service(admin).add_service(health);
    reflected(routes, MAX_QUESTION_BYTES).prepare()
}

#[cfg(test)]
mod tests {
    use caribou_proto::v1::task_service_server::SERVICE_NAME;

    use super::*;

    #[test]
    fn only_a_watcher_may_take_its_time() {
        assert!(is_conversation(&format!("/{SERVICE_NAME}/Watch")));
        assert!(!is_conversation(&format!("/{SERVICE_NAME}/WatchTask")) && !is_conversation("/Watch"));
    }
}
