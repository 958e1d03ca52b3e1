//! A scriptable MCP server over HTTP, and sessions with it.

use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::Response;
use caribou_core::config::{Origin, Secret, ServerConfig, Source, Transport, parse};
use caribou_core::network::AllowedNetworks;
use caribou_egress::WayOut;
use caribou_ports::mcp::{CallError, Credentials, OpenError, Session, SessionEvent, ToolCall};
use http::{HeaderMap, Method};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::super::Remotes;
use crate::channel::{Awaited, Opening};
use crate::server_asks::ServerAsks;
use crate::session::ChannelSession;

/// Everything in a test is over within this.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// One request that the fake saw.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl Seen {
    /// The JSON-RPC method, or `""`.
    pub(super) fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// The fake.
pub(super) struct Fake {
    pub(super) origin: String,
    log: Arc<Log>,
}

#[derive(Default)]
struct Log {
    seen: Mutex<Vec<Seen>>,
    more: Notify,
}

impl Fake {
    /// Serves `script` on a free port.
    pub(super) async fn start(script: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let (log, script) = (Arc::new(Log::default()), Arc::new(script));
        let serving = Arc::clone(&log);
        let app = Router::new().fallback(move |request: Request| {
            let (log, script) = (Arc::clone(&serving), Arc::clone(&script));
            async move {
                let seen = read(request).await;
                log.seen.lock().unwrap().push(seen.clone());
                log.more.notify_waiters();
                script(&seen)
            }
        });
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { origin, log }
    }

    pub(super) fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.log.seen.lock().unwrap().clone()
    }

    /// The JSON-RPC methods seen, in order; other requests by their HTTP method.
    pub(super) fn asked(&self) -> Vec<String> {
        let name = |seen: &Seen| match seen.rpc() {
            "" if seen.body.get("result").is_some() => "(answer)".to_owned(),
            "" => seen.method.to_string(),
            rpc => rpc.to_owned(),
        };
        self.seen().iter().map(name).collect()
    }

    /// Waits until a request like this was seen.
    pub(super) async fn saw(&self, wanted: impl Fn(&Seen) -> bool) -> Seen {
        let look = async {
            loop {
                let more = self.log.more.notified();
                tokio::pin!(more);
                more.as_mut().enable();
                if let Some(seen) = self.seen().into_iter().find(&wanted) {
                    return seen;
                }
                more.await;
            }
        };
        tokio::time::timeout(PATIENCE, look).await.expect("the fake never saw it")
    }
}

async fn read(request: Request) -> Seen {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let path = parts.uri.path_and_query().unwrap().to_string();
    Seen { method: parts.method, path, headers: parts.headers, body }
}

/// An answer with this status, type and body.
pub(super) fn text(status: u16, kind: &str, body: impl Into<Body>) -> Response {
    Response::builder().status(status).header("content-type", kind).body(body.into()).unwrap()
}

/// An empty answer.
pub(super) fn empty(status: u16) -> Response {
    Response::builder().status(status).body(Body::empty()).unwrap()
}

/// A JSON-RPC result to `seen`.
pub(super) fn result(seen: &Seen, result: Value) -> Response {
    let body = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result});
    text(200, "application/json", body.to_string())
}

/// A JSON-RPC error to `seen` under this status.
pub(super) fn error(seen: &Seen, status: u16, code: i64, message: &str) -> Response {
    let error = json!({"code": code, "message": message});
    let body = json!({"jsonrpc": "2.0", "id": seen.body["id"], "error": error});
    text(status, "application/json", body.to_string())
}

/// `response` with one more header.
pub(super) fn with(mut response: Response, name: &'static str, value: &str) -> Response {
    response.headers_mut().insert(name, value.parse().unwrap());
    response
}

/// An open event stream; what is sent into the other end comes out as it is.
pub(super) fn stream() -> (mpsc::UnboundedSender<String>, Response) {
    let (sender, receiver) = mpsc::unbounded_channel::<String>();
    let chunks = futures::stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|chunk| (Ok::<_, Infallible>(Bytes::from(chunk)), receiver))
    });
    (sender, text(200, "text/event-stream", Body::from_stream(chunks)))
}

/// A message as one event.
pub(super) fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

/// What a legacy server says to anything but a tool call; `None` for that.
pub(super) fn legacy(seen: &Seen) -> Option<Response> {
    Some(match (&seen.method, seen.rpc()) {
        (&Method::GET | &Method::DELETE, _) => empty(405),
        (_, "tools/call") => return None,
        (_, "initialize") => result(seen, initialized("2025-11-25")),
        (_, "tools/list") => result(seen, json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})),
        (_, rpc) if rpc.starts_with("notifications/") || rpc.is_empty() => empty(202),
        _ => error(seen, 400, -32000, "Server not initialized"),
    })
}

/// An `InitializeResult`.
pub(super) fn initialized(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {"tools": {"listChanged": true}},
           "serverInfo": {"name": "fake", "version": "0"}})
}

/// What a modern server says to `server/discover`.
pub(super) fn discovered(seen: &Seen) -> Response {
    result(
        seen,
        json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
               "capabilities": {"tools": {"listChanged": true}}}),
    )
}

/// How a session is opened.
pub(super) struct Client {
    pub(super) remotes: Arc<Remotes>,
    pub(super) eras: Arc<crate::era::memory::EraMemory>,
    pub(super) watch_lists: bool,
    pub(super) events: Arc<Mutex<Vec<SessionEvent>>>,
    pub(super) told: Arc<Notify>,
    pub(super) origin: Origin,
    pub(super) credentials: Credentials,
    pub(super) resume: Option<Secret>,
}

impl Client {
    pub(super) fn new() -> Self {
        // Fails when another test of this process was first, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            remotes: Remotes::new(AllowedNetworks::default(), &WayOut::default()).unwrap(),
            eras: Arc::default(),
            watch_lists: false,
            events: Arc::default(),
            told: Arc::default(),
            origin: Origin::Deployment,
            credentials: Credentials::default(),
            resume: None,
        }
    }

    /// One for a personal connection, which reaches these blocks of addresses beside the public internet.
    pub(super) fn personal(allowed: &[&str]) -> Self {
        let client = Self::new();
        let allowed = AllowedNetworks(allowed.iter().map(|block| block.parse().unwrap()).collect());
        let origin = Origin::Personal { connection: "mine".into() };
        Self { remotes: Remotes::new(allowed, &WayOut::default()).unwrap(), origin, ..client }
    }

    /// The server at `url`, with these further settings.
    pub(super) fn server(url: &str, more: &Value) -> Arc<ServerConfig> {
        let mut server = json!({"type": "http", "url": url});
        server.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let text = json!({"mcpServers": {"fake": server}}).to_string();
        let source = Source { file: Path::new("test.json"), text: text.as_bytes() };
        let document = parse(&source, &|_| None).unwrap();
        document.servers[0].config.clone().unwrap()
    }

    pub(super) async fn open(&self, url: &str) -> Result<ChannelSession, OpenError> {
        self.open_with(url, json!({})).await
    }

    pub(super) async fn open_with(&self, url: &str, more: Value) -> Result<ChannelSession, OpenError> {
        let server = Self::server(url, &more);
        let server = Arc::new(ServerConfig { origin: self.origin.clone(), ..(*server).clone() });
        let (events, told) = (Arc::clone(&self.events), Arc::clone(&self.told));
        let sink = Arc::new(move |event| {
            events.lock().unwrap().push(event);
            told.notify_one();
        });
        let opening = Opening {
            asks: Arc::new(ServerAsks::new(&server, sink)),
            server: Arc::clone(&server),
            label: "fake/ann:t1".to_owned(),
            credentials: self.credentials.clone(),
            folder: None,
            watch_lists: self.watch_lists,
            resume: self.resume.clone(),
            eras: Arc::clone(&self.eras),
            era_probe: Duration::from_secs(2),
            max_message_bytes: 1 << 20,
            awaited: Arc::new(Awaited::default()),
        };
        let opened = match &server.transport {
            Transport::Http(remote) => super::super::open(&self.remotes, remote, &opening).await?,
            Transport::Sse(remote) => crate::transport::http_sse::open(&self.remotes, remote, &opening).await?,
            Transport::Stdio(_) => unreachable!("a remote server"),
        };
        Ok(ChannelSession::new(opened, &opening, 1 << 20))
    }

    /// Waits until the session told this many things.
    pub(super) async fn was_told(&self, count: usize) -> Vec<SessionEvent> {
        let told = async {
            while self.events.lock().unwrap().len() < count {
                self.told.notified().await;
            }
        };
        tokio::time::timeout(PATIENCE, told).await.expect("nothing was told");
        self.events.lock().unwrap().clone()
    }
}

/// A call of `name` with these arguments.
pub(super) fn tool(name: &str, arguments: &str) -> ToolCall {
    let arguments = Some(RawValue::from_string(arguments.to_owned()).unwrap());
    ToolCall { name: name.into(), arguments, meta: Vec::new(), headers: Vec::new(), progress: None, task: None }
}

/// The outcome of a call, within the patience of a test.
pub(super) async fn call(session: &ChannelSession, name: &str) -> Result<String, CallError> {
    let called = session.call_tool(tool(name, "{}"));
    let outcome = tokio::time::timeout(PATIENCE, called).await.expect("the call never ended");
    outcome.map(|result| result.get().to_owned())
}
