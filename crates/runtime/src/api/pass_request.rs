//! Pass one request of the protocol that only reads to one server: prompts, resources and completions.
//!
//! Which methods there are is settled here; what they mean is the server's. A caller may use what its rules over
//! visible names cover: a prompt is named as a tool would be, `server_prompt`, and a method by its words, such as
//! `server_resources_read`.

use std::borrow::Cow;
use std::time::Duration;

use caribou_core::credentials::CallerHeaders;
use caribou_core::failure::Code;
use caribou_core::ids::{RequestId, Scope, ServerName};
use caribou_core::raw::{Members, text};
use caribou_core::session::call_limits;
use caribou_core::tool::visible_name;
use caribou_ports::mcp::{CallError, ProgressSink, RawRequest};
use serde_json::value::RawValue;
use tokio::time::timeout_at;

use super::one_server::enabled;
use crate::Runtime;
use crate::audit::Entry as Row;
use crate::call::{Bound, call_failed, call_headers};
use crate::caller::{Caller, RequestSecrets};
use crate::config::Binding;
use crate::error::VerbError;

/// The methods that may be passed: none of them has effects that the protocol knows of.
const PASSED: [&str; 6] = [
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "completion/complete",
];

/// One request as a caller asks for it.
pub struct PassRequest {
    /// The server it is for.
    pub server: ServerName,
    /// The method.
    pub method: Cow<'static, str>,
    /// Its parameters: an object, passed on as it is.
    pub params: Box<RawValue>,
    /// Who asks.
    pub caller: Caller,
    /// For whom, in which thread.
    pub scope: Scope,
    /// Secrets of this request, by key.
    pub secrets: RequestSecrets,
    /// Where progress goes.
    pub progress: Option<ProgressSink>,
    /// The caller's own bound.
    pub timeout: Option<Duration>,
    /// Names this request in logs and spans.
    pub request_id: RequestId,
}

impl Runtime {
    /// Passes one request to its server in the session of its scope, opened if there is none, and answers with the
    /// `result`, byte for byte. Dropping the future cancels it upstream.
    ///
    /// # Errors
    /// See [`VerbError::code`]; `invalid` for a method that is not passed.
    pub async fn pass_request(&self, request: PassRequest) -> Result<Box<RawValue>, VerbError> {
        let row = Row::new("pass_request", &request.caller).named(&request.request_id).within(&request.scope);
        let mut row = row.of_tool(&request.method);
        row.server = Some(request.server.clone());
        self.audit.around(row, self.pass_on_record(request)).await
    }

    async fn pass_on_record(&self, request: PassRequest) -> Result<Box<RawValue>, VerbError> {
        if !PASSED.contains(&&*request.method) {
            return Err(VerbError::new(Code::Invalid, format!("`{:.100}` is not passed on", request.method)));
        }
        request.secrets.check()?;
        let Ok(_slot) = self.calls.try_acquire() else {
            return Err(VerbError {
                retry_after: Some(Duration::from_secs(1)),
                ..VerbError::new(Code::Busy, "this replica has as many calls in flight as it may; try again")
            });
        };
        let bound = Bound::of(request.timeout.unwrap_or(self.options.call_max).min(self.options.call_max));
        let binding = async {
            let snapshot = self.sight(&request.scope.user).await.discovered(&request.server).await;
            let binding = enabled(&snapshot, &request.server)?.binding();
            binding.ok_or_else(|| VerbError::new(Code::NotFound, "the server does not take part"))
        };
        let binding = timeout_at(bound.deadline, binding).await;
        let binding =
            binding.unwrap_or_else(|_| Err(bound.not_called(&request.method, "its server is not known yet")))?;
        let shown = named(&binding, &request);
        request.caller.principal.uses(&shown)?;
        // A list shows what there is to whoever may see it, so that a client knows what to ask a token for.
        if !request.method.ends_with("/list") {
            request.caller.principal.holds(&binding.server.required_scopes)?;
        }
        self.options.guardrails.judge(&shown).map_err(|reason| {
            VerbError::new(Code::Denied, format!("`{}` of server `{}`: {reason}", request.method, request.server))
        })?;
        let passed = timeout_at(bound.deadline, Box::pin(self.pass_in_session(&binding, &request))).await;
        passed.unwrap_or_else(|_| Err(bound.not_called(&request.method, "its answer did not come")))
    }

    async fn pass_in_session(&self, binding: &Binding, request: &PassRequest) -> Result<Box<RawValue>, VerbError> {
        let server = &binding.server;
        let headers = CallerHeaders::plan(server, &request.scope.user, &request.secrets.0)
            .map_err(|denied| VerbError::new(Code::Denied, denied.to_string()))?;
        let mut is_first = true;
        loop {
            let admitted = self.router.admit(binding, &request.scope, &headers).await?;
            let limits = call_limits(server, request.timeout, self.options.http_call_timeout, self.options.call_max);
            let asked = admitted.session.request(RawRequest {
                method: request.method.clone(),
                params: request.params.clone(),
                headers: call_headers(server, &headers),
                progress: request.progress.clone(),
            });
            let Ok(outcome) = tokio::time::timeout(limits.total, asked).await else {
                let (seconds, method) = (limits.total.as_secs_f64(), &request.method);
                let detail = format!("server `{}` did not answer `{method}` within {seconds} s", server.shown_name());
                return Err(VerbError::new(Code::Timeout, detail));
            };
            admitted.handle.asked(&outcome);
            match outcome {
                Ok(result) => return Ok(result),
                // It surely never left: the session was lost between two requests.
                Err(CallError::Disconnected { sent: false, .. }) if is_first => is_first = false,
                Err(error) => return Err(call_failed(server, &request.method, error, headers.values())),
            }
        }
    }
}

/// What the rules of callers and guardrails know it by.
fn named(binding: &Binding, request: &PassRequest) -> String {
    let prompt = (request.method == "prompts/get")
        .then(|| Members::of(&request.params).and_then(|params| text(params.get("name")?).map(Cow::into_owned)))
        .flatten();
    let raw = prompt.unwrap_or_else(|| request.method.replace('/', "_"));
    visible_name(binding.server.shown_name(), &raw, true)
}
