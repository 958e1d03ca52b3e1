//! `builtin:request-id`: tells servers which request a call belongs to, so that their logs can be laid beside ours.
//!
//! Sets `X-Request-Id` on each call. It says nothing about who calls, so it parts no sessions. Cannot fail.

use caribou_core::config::Secret;
use caribou_ports::BoxFuture;
use caribou_ports::interceptor::{Before, InterceptedCall, Interceptor, InterceptorError, InterceptorHeader};
use serde_json::value::RawValue;

pub(crate) struct RequestIdHeader;

impl Interceptor for RequestIdHeader {
    fn before<'a>(&'a self, call: &'a InterceptedCall) -> BoxFuture<'a, Result<Before, InterceptorError>> {
        let header = InterceptorHeader {
            name: "X-Request-Id".to_owned(),
            value: Secret::new(call.request_id.as_str()),
            per_call: true,
        };
        Box::pin(std::future::ready(Ok(Before::Proceed { arguments: None, headers: vec![header] })))
    }

    fn after<'a>(
        &'a self,
        _: &'a InterceptedCall,
        result: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, InterceptorError>> {
        Box::pin(std::future::ready(Ok(result)))
    }
}
