//! One call and what comes back.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::Secret;
use caribou_core::ids::{RequestId, Scope};
use caribou_proto::v1;
use caribou_runtime::{CallTool, CalledTool, Caller, Progress, RequestSecrets, SessionSeen, Shape};
use serde_json::value::RawValue;
use tonic::Status;

use crate::status;

/// The call that a request asks for, bounded also by the caller's `deadline`.
///
/// # Errors
/// `INVALID_ARGUMENT`: `arguments` is no JSON text, or `timeout_seconds` no span of time.
pub(crate) fn into_call(
    request: v1::CallToolRequest,
    caller: Caller,
    scope: Scope,
    deadline: Option<Duration>,
    request_id: RequestId,
) -> Result<CallTool, Status> {
    let timeout = request.timeout_seconds.map(bound).transpose()?;
    let secrets = request.secrets.into_iter().map(|(key, secret)| (key, Secret::new(secret))).collect();
    Ok(CallTool {
        name: request.name,
        arguments: request.arguments.map(json).transpose()?,
        meta: Vec::new(),
        caller,
        scope,
        secrets: RequestSecrets(secrets),
        run_id: request.run_id.map(Arc::from),
        tool_call_id: request.tool_call_id.map(Arc::from),
        task: request.task.into(),
        timeout: [timeout, deadline].into_iter().flatten().min(),
        progress: None,
        shape: Shape::Raw,
        request_id,
    })
}

/// Takes a text over as it is once it is known to be JSON.
fn json(text: String) -> Result<Box<RawValue>, Status> {
    // Messages of the parser are fixed phrases and a position.
    RawValue::from_string(text).map_err(|error| status::invalid(format!("`arguments` is not JSON: {error}")))
}

fn bound(seconds: f64) -> Result<Duration, Status> {
    let bound = Duration::try_from_secs_f64(seconds).ok().filter(|bound| !bound.is_zero());
    bound.ok_or_else(|| status::invalid("`timeout_seconds` must be a number of seconds above zero"))
}

/// The answer of a call that was made.
pub(crate) fn called(called: &CalledTool, request_id: &RequestId) -> v1::CallToolResponse {
    v1::CallToolResponse {
        result: called.result.get().to_owned(),
        session: called.session.as_ref().map(session),
        request_id: request_id.as_str().to_owned(),
    }
}

fn session(seen: &SessionSeen) -> v1::Session {
    v1::Session {
        server: seen.server.as_str().to_owned(),
        epoch: seen.epoch.0,
        replica: seen.replica.as_str().to_owned(),
        restarted: seen.restarted,
    }
}

/// One report of a running call.
pub(crate) fn reported(report: &Progress) -> v1::CallToolEvent {
    use v1::call_tool_event::Event;
    let event = match report {
        Progress::Progress(params) => Event::Progress(params.get().to_owned()),
        Progress::Message(params) => Event::Message(params.get().to_owned()),
    };
    v1::CallToolEvent { event: Some(event) }
}

#[cfg(test)]
mod tests {
    use caribou_runtime::Door;
    use tonic::Code;

    use super::*;

    fn call(request: v1::CallToolRequest, deadline: Option<Duration>) -> Result<CallTool, Status> {
        let scope = Scope::new(None, None);
        into_call(request, Caller::local(Door::Grpc), scope, deadline, RequestId::new("r"))
    }

    fn bounded(timeout_seconds: Option<f64>, deadline: Option<u64>) -> Option<Duration> {
        let request = v1::CallToolRequest { timeout_seconds, ..Default::default() };
        call(request, deadline.map(Duration::from_secs)).ok().unwrap().timeout
    }

    #[test]
    fn arguments_stay_the_text_that_came() {
        // Invariant W1.
        let with = |arguments: Option<&str>| {
            let request = v1::CallToolRequest { arguments: arguments.map(str::to_owned), ..Default::default() };
            call(request, None).map(|call| call.arguments.map(|text| text.get().to_owned()))
        };
        let odd = r#"{"b":1.0,  "a":9223372036854775809,"a":null}"#;
        assert_eq!(with(Some(odd)).unwrap().as_deref(), Some(odd));
        assert_eq!(with(Some("null")).unwrap().as_deref(), Some("null"));
        assert_eq!(with(None).unwrap(), None);
        for wrong in ["", "{", "hunter2", "{} {}"] {
            let refused = with(Some(wrong)).unwrap_err();
            assert!(refused.code() == Code::InvalidArgument && !refused.message().contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn the_shorter_of_both_bounds_holds() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(bounded(None, None), None);
        assert_eq!(bounded(Some(2.0), None), seconds(2));
        assert_eq!(bounded(None, Some(3)), seconds(3));
        assert_eq!(bounded(Some(2.0), Some(3)), seconds(2));
        assert_eq!(bounded(Some(4.0), Some(3)), seconds(3));
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let request = v1::CallToolRequest { timeout_seconds: Some(wrong), ..Default::default() };
            assert_eq!(call(request, None).err().unwrap().code(), Code::InvalidArgument, "{wrong}");
        }
    }
}
