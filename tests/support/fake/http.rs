//! The fake over HTTP, within the test's own process.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};
use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc};

use super::encrypted::Encrypted;
use super::event_stream;
use super::outlet::{Out, Outlet, mangled};
use super::replies::{self, Incoming, MODERN};
use super::script::{Answers, Mismatch, Script, Status};
use super::seen::{Log, Seen};
use super::server::{Context, Server};
use super::stdio::with;

/// Headers that a client may send only once.
const SINGLE: [&str; 6] =
    ["accept", "content-type", "content-length", "host", "mcp-session-id", "mcp-protocol-version"];

/// The header of a JSON answer.
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// A fake that listens on loopback until it is dropped.
#[derive(Debug)]
pub struct HttpFake {
    url: String,
    front: Arc<Front>,
    task: tokio::task::JoinHandle<()>,
}

/// What all requests share.
#[derive(Debug)]
pub(super) struct Front {
    pub server: Arc<Server>,
    /// Legacy sessions and how many calls each has had.
    sessions: Mutex<HashMap<String, u32>>,
    minted: AtomicU32,
    /// The rest of a stream that a GET may resume, by event id.
    pub resumable: Mutex<HashMap<String, mpsc::Receiver<Out>>>,
    /// What standing streams carry.
    pub standing: broadcast::Sender<String>,
    door: OnceLock<Door>,
}

/// Whom a fake lets in: given `Authorization`, the refusal.
struct Door(Box<Judge>);

/// What a door decides by.
type Judge = dyn Fn(&str) -> Option<Status> + Send + Sync;

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Door")
    }
}

impl HttpFake {
    /// Starts one on a free port.
    pub async fn start(script: impl Into<Script>) -> Self {
        Self::listen(script.into(), None).await
    }

    /// Starts one that is reached over HTTPS only.
    pub async fn start_encrypted(script: impl Into<Script>, config: Arc<ServerConfig>) -> Self {
        Self::listen(script.into(), Some(config)).await
    }

    async fn listen(script: Script, config: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let front = Arc::new(Front {
            server: Server::new(script, Log::Memory(Arc::default())),
            sessions: Mutex::default(),
            minted: AtomicU32::new(0),
            resumable: Mutex::default(),
            standing: broadcast::channel(64).0,
            door: OnceLock::new(),
        });
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&front));
        let log = front.server.log.clone();
        let url = format!("http{}://{address}", if config.is_some() { "s" } else { "" });
        let task = tokio::spawn(async move {
            let served = match config {
                Some(config) => axum::serve(Encrypted { listener, config, log }, routes).await,
                None => axum::serve(listener, routes).await,
            };
            served.expect("serving goes on");
        });
        Self { url, front, task }
    }

    /// Its address without a path.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its entry of `mcpServers` for streamable HTTP.
    pub fn entry(&self) -> Value {
        json!({ "type": "http", "url": format!("{}{}", self.url, self.front.server.script.http.path) })
    }

    /// Its entry for HTTP+SSE.
    pub fn sse_entry(&self) -> Value {
        json!({ "type": "sse", "url": format!("{}/sse", self.url) })
    }

    /// Its entry for streamable HTTP with further members.
    pub fn entry_with(&self, members: Value) -> Value {
        with(self.entry(), members)
    }

    /// What it saw.
    pub fn log(&self) -> Log {
        self.front.server.log.clone()
    }

    /// Asks `door` about the `Authorization` of every request, the empty text where there is none; what it answers
    /// with is the answer. Once.
    pub fn admit_if(&self, door: impl Fn(&str) -> Option<Status> + Send + Sync + 'static) {
        assert!(self.front.door.set(Door(Box::new(door))).is_ok(), "it has a door already");
    }

    /// Forgets all legacy sessions, as a restarted server would.
    pub fn expire_sessions(&self) {
        self.front.sessions.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// How many legacy sessions it holds.
    pub fn sessions(&self) -> usize {
        self.front.sessions.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Sends a message on all standing streams; tells how many there are.
    pub fn push(&self, message: &Value) -> usize {
        self.front.standing.send(message.to_string()).unwrap_or(0)
    }
}

impl Drop for HttpFake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    State(front): State<Arc<Front>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let raw = String::from_utf8_lossy(&body).into_owned();
    front.record(&method, &uri, &headers, &raw);
    let http = &front.server.script.http;
    if let Some(refused) = front.door.get().and_then(|door| (door.0)(header(&headers, "authorization"))) {
        return plain(&refused);
    }
    if let Some(status) = &http.always {
        return plain(status);
    }
    if let Some((code, location)) = http.redirects.get(uri.path()) {
        return status(*code, &[("location", location)], "");
    }
    match (method.as_str(), uri.path()) {
        ("GET", "/sse") => event_stream::open(&front),
        ("POST", "/messages") => event_stream::message(&front, &raw).await,
        (_, path) if path != http.path => status(404, &[], "no such path"),
        ("POST", _) => front.post(&headers, &raw).await,
        ("GET", _) => event_stream::standing(&front, &headers),
        ("DELETE", _) => front.delete(&headers),
        _ => status(405, &[], ""),
    }
}

impl Front {
    fn record(&self, method: &Method, uri: &Uri, headers: &HeaderMap, raw: &str) {
        let mut seen: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in headers {
            let value = String::from_utf8_lossy(value.as_bytes());
            let held = seen.entry(name.as_str().to_owned()).or_default();
            let comma = if held.is_empty() { "" } else { ", " };
            *held = format!("{held}{comma}{value}");
        }
        self.server.log.add_full(Seen {
            event: "recv".to_owned(),
            raw: raw.to_owned(),
            method: method.to_string(),
            path: uri.to_string(),
            headers: seen,
            ..Seen::default()
        });
    }

    fn delete(&self, headers: &HeaderMap) -> Response<Body> {
        if self.server.script.http.no_delete {
            return status(405, &[], "");
        }
        let known =
            self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(header(headers, "mcp-session-id"));
        status(if known.is_some() { 200 } else { 404 }, &[], "")
    }

    async fn post(self: &Arc<Self>, headers: &HeaderMap, raw: &str) -> Response<Body> {
        if let Some(refused) = refused_headers(headers) {
            return refused;
        }
        let Ok(incoming) = serde_json::from_str::<Incoming>(raw) else {
            let nobody = Incoming { id: None, method: None, params: None };
            return status(400, &JSON, &nobody.error(&replies::error(-32700, "not JSON")));
        };
        let method = incoming.method.clone().unwrap_or_default();
        let session_calls = match self.session(headers, &incoming) {
            Ok(calls) => calls,
            Err(code) => return status(code, &[], ""),
        };
        if !self.server.script.on.contains_key(&method)
            && let Some((code, error)) = self.refusal(headers, &incoming)
        {
            return status(code, &JSON, &incoming.error(&error));
        }
        let session = (method == "initialize").then(|| self.mint()).flatten();
        let context =
            Context { session_calls, ends_with_stream: incoming.is_modern(&self.server.script), ..Context::default() };
        if incoming.id.is_none() {
            let (sender, _unused) = mpsc::channel(16);
            self.server.accept(incoming, Outlet::Http(sender), context).await;
            return status(202, &[], "");
        }
        self.respond(incoming, context, session).await
    }

    /// What the envelope lacks that the protocol wants over HTTP.
    fn refusal(&self, headers: &HeaderMap, incoming: &Incoming) -> Option<(u16, Value)> {
        let script = &self.server.script;
        let version = header(headers, "mcp-protocol-version");
        if let Some(refused) = replies::refusal(script, incoming) {
            return Some(refused);
        }
        if incoming.is_modern(script) {
            let wrong = mirrored(headers, incoming).into_iter().find(|(_, sent, wanted)| sent != wanted);
            return wrong.map(|(name, sent, wanted)| {
                (400, replies::error(-32020, &format!("header {name} is `{sent}`, the body says `{wanted}`")))
            });
        }
        let versions = replies::versions(script);
        let asked = incoming.params()["protocolVersion"].as_str().unwrap_or_default().to_owned();
        let asked = if incoming.method.as_deref() == Some("initialize") { asked.as_str() } else { version };
        let lacks = !asked.is_empty() && !versions.contains(&asked);
        (lacks && script.on_mismatch == Mismatch::Refuse).then(|| (400, replies::mismatch(&versions)))
    }

    /// Counts a call of its session; an unknown or missing session is refused as the protocol says.
    fn session(&self, headers: &HeaderMap, incoming: &Incoming) -> Result<u32, u16> {
        let method = incoming.method.as_deref().unwrap_or_default();
        if !self.server.script.http.sessions || incoming.is_modern(&self.server.script) {
            return Ok(0);
        }
        let id = header(headers, "mcp-session-id");
        if method == "initialize" {
            return if id.is_empty() { Ok(0) } else { Err(400) };
        }
        if id.is_empty() {
            return Err(400);
        }
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = sessions.get_mut(id).ok_or(404_u16)?;
        *calls += u32::from(method == "tools/call");
        Ok(*calls)
    }

    fn mint(&self) -> Option<String> {
        let number = self.minted.fetch_add(1, Ordering::Relaxed);
        let id = format!("session-{number}");
        self.server.script.http.sessions.then(|| {
            self.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), 0);
            id
        })
    }

    async fn respond(
        self: &Arc<Self>,
        incoming: Incoming,
        context: Context,
        session: Option<String>,
    ) -> Response<Body> {
        let (sender, mut outs) = mpsc::channel(16);
        // A task of its own: a client that goes away must not end a legacy call.
        tokio::spawn(self.server.accept(incoming, Outlet::Http(sender), context));
        let mut response = if self.server.script.http.answers == Answers::Sse {
            match outs.recv().await {
                Some(Out::Status(status)) => plain(&status),
                first => event_stream::response(self, first, outs),
            }
        } else {
            self.whole(outs).await
        };
        if let Some(session) = session {
            response.headers_mut().insert("mcp-session-id", session.parse().expect("a plain id"));
        }
        response
    }

    /// The answer as one JSON body; what else was given out before it has no place there.
    async fn whole(self: &Arc<Self>, mut outs: mpsc::Receiver<Out>) -> Response<Body> {
        let mut answer = String::new();
        while let Some(out) = outs.recv().await {
            match out {
                Out::Status(status) => return plain(&status),
                Out::Message(message) if is_answer(&message) => answer = message,
                Out::Message(_) => {}
                other => return event_stream::response(self, Some(other), outs),
            }
        }
        status(200, &JSON, &mangled(&self.server.script.framing, &answer))
    }
}

fn is_answer(message: &str) -> bool {
    let json: Value = serde_json::from_str(message).unwrap_or_default();
    json.get("method").is_none()
}

fn refused_headers(headers: &HeaderMap) -> Option<Response<Body>> {
    if let Some(name) = SINGLE.iter().find(|name| headers.get_all(**name).iter().count() > 1) {
        return Some(status(400, &[], &format!("header {name} is doubled")));
    }
    let accept = header(headers, "accept");
    if !(accept.contains("application/json") && accept.contains("text/event-stream")) {
        return Some(status(406, &[], "both media types must be accepted"));
    }
    (!header(headers, "content-type").starts_with("application/json")).then(|| status(415, &[], "not JSON"))
}

/// The headers that repeat the body in the modern era: name, what was sent, what the body says.
fn mirrored(headers: &HeaderMap, incoming: &Incoming) -> Vec<(&'static str, String, String)> {
    let sent = |name| header(headers, name).to_owned();
    let mut all = vec![
        ("MCP-Protocol-Version", sent("mcp-protocol-version"), MODERN.to_owned()),
        ("Mcp-Method", sent("mcp-method"), incoming.method.clone().unwrap_or_default()),
    ];
    if incoming.method.as_deref() == Some("tools/call") {
        let name = incoming.params()["name"].as_str().unwrap_or_default().to_owned();
        all.push(("Mcp-Name", sent("mcp-name"), name));
    }
    all
}

/// The value of a header, empty when it is absent or not text.
pub(super) fn header<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn plain(answer: &Status) -> Response<Body> {
    let headers: Vec<(&str, &str)> = answer.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    status(answer.code, &headers, &answer.body)
}

/// A plain answer.
pub(super) fn status(code: u16, headers: &[(&str, &str)], body: &str) -> Response<Body> {
    let mut response = Response::builder().status(code);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Body::from(body.to_owned())).expect("the script names legal headers")
}
