//! The call that the tests show, and how interceptors are made.

use std::sync::Arc;

use caribou_core::config::{InterceptorEntry, Secret};
use caribou_core::ids::{RequestId, Scope, ServerName};
use caribou_interceptors::Registry;
use caribou_ports::interceptor::{InterceptedCall, Interceptor, Interceptors};
use serde_json::value::RawValue;

/// Numbers that no machine type holds, and an odd order.
pub(crate) const ARGUMENTS: &str = r#"{"z":1.0,"a":18446744073709551617,"n":null}"#;

pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

pub(crate) fn call() -> InterceptedCall {
    InterceptedCall {
        server: ServerName::from("github"),
        raw_name: "search".into(),
        visible_name: "github_search".into(),
        scope: Scope::new(Some("ann"), Some("t1")),
        run_id: Some("r1".into()),
        tool_call_id: None,
        request_id: RequestId::from("q1"),
        arguments: Some(raw(ARGUMENTS)),
        headers: vec![("X-Tenant".to_owned(), Secret::new("7"))],
        secrets: vec![("key".to_owned(), Secret::new("hunter22"))],
    }
}

/// The interceptor that `entry` names.
pub(crate) fn made(entry: &InterceptorEntry) -> Arc<dyn Interceptor> {
    Registry::new().unwrap().build(entry, &ServerName::from("github")).unwrap().unwrap()
}
