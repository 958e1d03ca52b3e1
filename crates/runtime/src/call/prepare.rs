//! What a call carries, decided before any traffic.
//!
//! Owns the order: the headers of user and request (contract 8.1), then the interceptors, whose headers come last
//! (contract 8.6). A caller without a credential is refused here (contract 8.4, 8.5), so nothing of its call, not even
//! the opening of a session, reaches the server.

use caribou_core::config::{Secret, ServerConfig};
use caribou_core::credentials::CallerHeaders;
use caribou_core::failure::Code;
use caribou_ports::interceptor::InterceptedCall;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::api::call_tool::CallTool;
use crate::catalog::Target;
use crate::error::VerbError;
use crate::interception::{Flow, Passage};

/// How a call goes on.
pub(crate) enum Way {
    /// To its server.
    On(Box<Prepared>),
    /// An interceptor answered it; nothing is sent.
    Answered(Box<RawValue>),
}

/// What a call carries.
pub(crate) struct Prepared {
    pub(crate) headers: CallerHeaders,
    /// Members of `_meta`; only a child process gets headers there.
    pub(crate) meta: Vec<(String, Box<RawValue>)>,
    /// The interceptors that were asked, if there are any; holds the arguments then.
    pub(crate) passage: Option<Passage>,
}

impl Prepared {
    /// The arguments as they are to be sent.
    pub(crate) fn arguments<'a>(&'a self, call: &'a CallTool) -> Option<&'a RawValue> {
        match &self.passage {
            Some(passage) => passage.arguments(),
            None => call.arguments.as_deref(),
        }
    }

    /// The headers of this call alone, over HTTP.
    pub(super) fn call_headers(&self, server: &ServerConfig) -> Vec<(String, Secret)> {
        call_headers(server, &self.headers)
    }
}

/// The headers of one call alone, over HTTP.
pub(crate) fn call_headers(server: &ServerConfig, headers: &CallerHeaders) -> Vec<(String, Secret)> {
    if server.transport.owns_process() { Vec::new() } else { headers.of_call().to_vec() }
}

/// Decides what `call` carries; takes its arguments where interceptors look at them.
pub(crate) async fn prepare(target: &Target, call: &mut CallTool) -> Result<Way, VerbError> {
    let server = &target.binding.server;
    let planned = CallerHeaders::plan(server, &call.scope.user, &call.secrets.0);
    let mut headers = planned.map_err(|denied| {
        tracing::info!(tool = call.name, session = %call.scope, request_id = %call.request_id, "denied: {denied}");
        VerbError::new(Code::Denied, denied.to_string())
    })?;
    let mut passage = None;
    if !target.chain.is_empty() {
        let shown = intercepted(target, call);
        match target.chain.before(server, shown, &mut headers, &call.secrets).await? {
            Flow::Go(asked) => passage = Some(*asked),
            Flow::Answered(result) => return Ok(Way::Answered(result)),
        }
    }
    let meta = header_meta(server, &headers);
    Ok(Way::On(Box::new(Prepared { headers, meta, passage })))
}

fn intercepted(target: &Target, call: &mut CallTool) -> InterceptedCall {
    InterceptedCall {
        server: target.binding.server.name.clone(),
        raw_name: target.raw_name.clone(),
        visible_name: call.name.as_str().into(),
        scope: call.scope.clone(),
        run_id: call.run_id.clone(),
        tool_call_id: call.tool_call_id.clone(),
        request_id: call.request_id.clone(),
        arguments: call.arguments.take(),
        headers: Vec::new(),
        secrets: Vec::new(),
    }
}

/// A child process is told the headers that interceptors set in `_meta`, and nothing when they set none
/// (contract 4.8).
pub(crate) fn header_meta(server: &ServerConfig, headers: &CallerHeaders) -> Vec<(String, Box<RawValue>)> {
    if !server.transport.owns_process() || headers.of_call().is_empty() {
        return Vec::new();
    }
    let told = headers.of_call().iter().map(|(name, value)| (name.clone(), Value::from(value.expose())));
    let told = RawValue::from_string(Value::Object(told.collect::<Map<_, _>>()).to_string());
    told.map(|told| ("headers".to_owned(), told)).into_iter().collect()
}
