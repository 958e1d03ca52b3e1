//! One request of the client: sent once, and answered whatever becomes of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use caribou_core::failure::Code;
use caribou_ports::mcp::CallError;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::value::RawValue;
use tokio::time::{sleep, timeout};

use super::answers::Awaited;
use super::bridge::{Bridge, SILENCE};
use super::client::version_of;
use super::fault::Fault;
use super::relearn::is_mismatch;
use crate::era::handshake::INITIALIZE;
use crate::transport::event_stream::EventStream;
use crate::transport::http::is_event_stream;
use crate::transport::http::live::Live;
use crate::wire::excerpt::excerpt;
use crate::wire::headers::LAST_EVENT_ID;
use crate::wire::params::member;

/// The request whose arguments may be mirrored.
const CALL_TOOL: &str = "tools/call";

/// What is read of a refusal's body: more than any JSON-RPC error needs.
const REFUSAL_BYTES: usize = 64 * 1024;

/// Resumes in a row that bring no message before the answer counts as lost; their pauses double.
const MAX_RESUMES: u32 = 6;

/// The pause before a resume when the server names none, and the bounds of what it may name.
const RESUME_PAUSE: Duration = Duration::from_secs(1);
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(60));

/// How long the head of a resumed stream may take.
const RESUME_HEAD: Duration = Duration::from_secs(10);

/// One request of the client.
pub(super) struct Request {
    /// Its id as it is written.
    pub(super) id: Box<RawValue>,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
    /// All of it.
    pub(super) body: Bytes,
}

impl Request {
    /// The revision that it names; `None` = it is of the legacy era.
    pub(super) fn version(&self) -> Option<String> {
        version_of(self.params.as_deref())
    }

    /// What it asks for, by the member that its method names it by (mcp.md §3.1).
    fn name(&self) -> Option<String> {
        let named_by = match self.method.as_str() {
            CALL_TOOL | "prompts/get" => "name",
            "resources/read" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return None,
        };
        serde_json::from_str(member(self.params.as_deref()?, named_by)?.get()).ok()
    }
}

/// A complete answer that refuses a request.
struct Refusal {
    status: StatusCode,
    body: Vec<u8>,
}

impl Bridge {
    /// Sends a request and passes its answer on, or says why there is none.
    pub(super) async fn ask(self: &Arc<Self>, request: &Request) {
        if let Err(fault) = self.answer(request).await {
            self.out.line(&fault.line(Some(&request.id))).await;
        }
    }

    async fn answer(self: &Arc<Self>, request: &Request) -> Result<(), Fault> {
        let (mut was_reopened, mut was_listed) = (false, false);
        loop {
            let live = match request.method == INITIALIZE {
                true => Arc::new(self.unopened()),
                false => self.live(),
            };
            let response = self.post(&live, self.headers(&live, request), request.body.clone()).await?;
            if response.status().is_success() {
                return self.read(&live, response, request).await;
            }
            let refusal = read_refusal(response).await;
            if let Some(version) = request.version()
                && request.method == CALL_TOOL
                && !std::mem::replace(&mut was_listed, true)
                && is_mismatch(&refusal.body)
                && self.relearn(&live, request, &version).await.is_ok()
            {
                continue;
            }
            // Not processed: the server does not know the session (architecture.md §9).
            let is_lost =
                refusal.status == StatusCode::NOT_FOUND && live.session.is_some() && request.version().is_none();
            if !is_lost || was_reopened {
                return self.refused(&refusal, request).await;
            }
            self.reopen(&live).await?;
            was_reopened = true;
        }
    }

    fn headers(&self, live: &Live, request: &Request) -> HeaderMap {
        match request.version() {
            Some(version) => {
                let (name, params) = (request.name(), request.params.as_deref());
                self.modern_headers(live, &version, &request.method, name.as_deref(), params)
            }
            None => live.post.clone(),
        }
    }

    /// Passes the error on that a refusal holds, or says what the status means.
    async fn refused(&self, refusal: &Refusal, request: &Request) -> Result<(), Fault> {
        let awaited = Awaited { id: &request.id, method: &request.method, headers: None, is_shown: true, next: None };
        if self.deliver(&refusal.body, Some(&awaited)).await {
            return Ok(());
        }
        let says = excerpt(&refusal.body, &self.link.masker());
        let says = if says.is_empty() { says } else { format!(": {says}") };
        Err(Fault::refused(&self.link.name(), refusal.status, &says))
    }

    async fn read(self: &Arc<Self>, live: &Live, response: reqwest::Response, request: &Request) -> Result<(), Fault> {
        let headers = response.headers().clone();
        let awaited =
            Awaited { id: &request.id, method: &request.method, headers: Some(&headers), is_shown: true, next: None };
        let is_legacy = request.version().is_none();
        self.read_answer(live, response, &awaited, is_legacy).await
    }

    /// Reads the answer to the request that opened a session again; the client has had one.
    pub(super) async fn read_reopened(
        self: &Arc<Self>,
        response: reqwest::Response,
        id: &RawValue,
    ) -> Result<(), Fault> {
        let headers = response.headers().clone();
        let awaited = Awaited { id, method: INITIALIZE, headers: Some(&headers), is_shown: false, next: None };
        let live = self.unopened();
        self.read_answer(&live, response, &awaited, false).await
    }

    pub(super) async fn read_answer(
        self: &Arc<Self>,
        live: &Live,
        response: reqwest::Response,
        awaited: &Awaited<'_>,
        can_resume: bool,
    ) -> Result<(), Fault> {
        if is_event_stream(response.headers()) {
            return self.read_stream(live, EventStream::new(response, self.limit), awaited, can_resume).await;
        }
        let body = self.collect(response).await?;
        if self.deliver(&body, Some(awaited)).await {
            return Ok(());
        }
        let (server, shown) = (self.link.name(), excerpt(&body, &self.link.masker()));
        Err(Fault::new(Code::UpstreamError, format!("{server} answered with something that is no answer: {shown}")))
    }

    async fn collect(&self, mut response: reqwest::Response) -> Result<Vec<u8>, Fault> {
        let mut body = Vec::new();
        loop {
            let chunk = timeout(SILENCE, response.chunk()).await.map_err(|_| Fault::late(&self.link.name()))?;
            let Some(chunk) = chunk.map_err(|error| self.link.broke_off(&error))? else { return Ok(body) };
            if body.len() + chunk.len() > self.limit {
                return Err(CallError::TooLarge { limit: self.limit }.into());
            }
            body.extend_from_slice(&chunk);
        }
    }

    async fn read_stream(
        &self,
        live: &Live,
        mut stream: EventStream,
        awaited: &Awaited<'_>,
        can_resume: bool,
    ) -> Result<(), Fault> {
        let mut fruitless = 0;
        loop {
            let next = timeout(SILENCE, stream.next()).await.map_err(|_| Fault::late(&self.link.name()))?;
            match next {
                Ok(Some(event)) if event.is_message() => {
                    fruitless = 0;
                    if self.deliver(&event.data, Some(awaited)).await {
                        return Ok(());
                    }
                }
                Ok(Some(_)) => {}
                Err(error @ CallError::TooLarge { .. }) => return Err(error.into()),
                Ok(None) | Err(_) => {
                    if !(can_resume && fruitless < MAX_RESUMES && self.resume(live, &mut stream, fruitless).await) {
                        return Err(self.lost(awaited.method));
                    }
                    fruitless += 1;
                }
            }
        }
    }

    /// Whether the rest of a stream that ended too early was opened. A legacy server resumes one whose events have ids.
    async fn resume(&self, live: &Live, stream: &mut EventStream, fruitless: u32) -> bool {
        let Some(place) = stream.last_id().and_then(|id| HeaderValue::from_str(id).ok()) else { return false };
        let (shortest, longest) = PAUSES;
        let pause = stream.retry().unwrap_or(RESUME_PAUSE).clamp(shortest, longest);
        sleep(pause.saturating_mul(1 << fruitless).min(longest)).await;
        let mut headers = live.get(&self.link);
        headers.insert(LAST_EVENT_ID, place);
        let sent = timeout(RESUME_HEAD, self.link.send(Method::GET, &live.url, headers, None)).await;
        match sent {
            Ok(Ok(reached)) if is_event_stream(reached.response.headers()) => stream.go_on_with(reached.response),
            Ok(Ok(reached)) if reached.response.status().is_client_error() => return false,
            // Away for the moment: the next pause is longer.
            _ => {}
        }
        true
    }

    fn lost(&self, method: &str) -> Fault {
        let server = self.link.name();
        CallError::StreamEnded(format!(
            "{server} ended its answer to `{method}` before the result; whether it took effect is unknown"
        ))
        .into()
    }
}

async fn read_refusal(mut response: reqwest::Response) -> Refusal {
    let (status, mut body) = (response.status(), Vec::new());
    // A body that breaks off, or takes too long, says what it said.
    while let Ok(Ok(Some(chunk))) = timeout(RESUME_HEAD, response.chunk()).await {
        body.extend_from_slice(&chunk[..chunk.len().min(REFUSAL_BYTES - body.len())]);
        if body.len() == REFUSAL_BYTES {
            break;
        }
    }
    Refusal { status, body }
}
