//! `grpc.reflection`, both revisions: tools such as grpcurl need no `.proto` files. Shows what is served and no more.

use caribou_proto::FILE_DESCRIPTOR_SET;
use caribou_proto::v1::{admin_service_server, task_service_server, tool_service_server};
use tonic::service::Routes;
use tonic_health::pb::health_server;
use tonic_reflection::server::Builder;

/// Adds the services that describe the others. Descriptors that cannot be read, which a test shows they can, leave
/// them out: nothing depends on them.
pub(super) fn reflected(routes: Routes, max_question_bytes: usize) -> Routes {
    let routes = match described().build_v1() {
        Ok(service) => routes.add_service(service.max_decoding_message_size(max_question_bytes)),
        Err(_) => routes,
    };
    match described().build_v1alpha() {
        Ok(service) => routes.add_service(service.max_decoding_message_size(max_question_bytes)),
        Err(_) => routes,
    }
}

fn described() -> Builder<'static> {
    Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .with_service_name(tool_service_server::SERVICE_NAME)
        .with_service_name(task_service_server::SERVICE_NAME)
        .with_service_name(admin_service_server::SERVICE_NAME)
        .with_service_name(health_server::SERVICE_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptors_can_be_read() {
        assert!(described().build_v1().is_ok() && described().build_v1alpha().is_ok());
    }
}
