//! A connector whose servers are scripts in memory: what they were asked is counted, what they do is told by name.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou_core::config::{Remote, Secret, ServerConfig, ServerEntry, Source, Transport, parse};
use caribou_core::era::Era;
use caribou_core::ids::{BootId, RequestId, Scope, ServerName};
use caribou_core::task::native::Wish;
use caribou_ports::BoxFuture;
use caribou_ports::guard::Exit;
use caribou_ports::mcp::{
    CallError, Connector, Disconnect, EventSink, OpenError, OpenSession, RawRequest, Session, SessionEvent,
    SessionFacts, TaskQuestion, ToolCall, ToolListing,
};
use caribou_runtime::{CallTool, Caller, Door, Options, RequestSecrets, Runtime, Shape};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::watch;

/// The value of a header that no server accepts.
pub(crate) const REFUSED: &str = "Bearer refused";

/// What the fake does, and what it saw.
pub(crate) struct Fake {
    pub(crate) open_takes: Duration,
    pub(crate) close_takes: Mutex<Duration>,
    /// Every n-th bring-up fails; 0 = none.
    pub(crate) fail_every: usize,
    /// Servers whose bring-up never ends.
    pub(crate) hanging: Vec<&'static str>,
    /// Servers whose bring-up always fails.
    pub(crate) failing: Vec<&'static str>,
    /// Servers whose bring-up panics.
    pub(crate) panicking: Vec<&'static str>,
    /// From now on every bring-up fails.
    pub(crate) down: AtomicBool,
    /// From now on no bring-up ends.
    pub(crate) stalled: AtomicBool,
    pub(crate) tools: Mutex<Vec<String>>,
    pub(crate) opened: AtomicUsize,
    pub(crate) alive: AtomicUsize,
    pub(crate) most_alive: AtomicUsize,
    pub(crate) opening: AtomicUsize,
    pub(crate) most_opening: AtomicUsize,
    pub(crate) listed: AtomicUsize,
    /// Of these, in sessions with headers of a caller.
    pub(crate) listed_with_headers: AtomicUsize,
    pub(crate) calls: AtomicUsize,
    pub(crate) cancelled: AtomicUsize,
    pub(crate) sinks: Mutex<Vec<(String, EventSink)>>,
    /// What calls reached a server, in order.
    pub(crate) sent: Mutex<Vec<Sent>>,
    /// The next call of `reopen` tells that the session was lost and opened anew.
    pub(crate) reopen: AtomicBool,
    /// What sessions opened from now on are of.
    pub(crate) era: Mutex<Era>,
    /// The capabilities that servers declare.
    pub(crate) capabilities: Mutex<Option<&'static str>>,
    /// What tools state of being called as a task.
    pub(crate) task_support: Mutex<BTreeMap<&'static str, &'static str>>,
    /// Results of tools and of other methods, by name, in place of what they do otherwise.
    pub(crate) results: Mutex<BTreeMap<&'static str, String>>,
    /// Methods that were asked for besides calls and lists.
    pub(crate) asked: Mutex<Vec<String>>,
    /// What was declared to each session.
    pub(crate) declared: Mutex<Vec<String>>,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            open_takes: Duration::from_millis(10),
            close_takes: Mutex::new(Duration::from_millis(10)),
            fail_every: 0,
            hanging: Vec::new(),
            failing: Vec::new(),
            panicking: Vec::new(),
            down: AtomicBool::new(false),
            stalled: AtomicBool::new(false),
            tools: Mutex::new(["count", "hang", "die", "unsent", "error", "reopen", "slow"].map(String::from).into()),
            opened: AtomicUsize::new(0),
            alive: AtomicUsize::new(0),
            most_alive: AtomicUsize::new(0),
            opening: AtomicUsize::new(0),
            most_opening: AtomicUsize::new(0),
            listed: AtomicUsize::new(0),
            listed_with_headers: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            cancelled: AtomicUsize::new(0),
            sinks: Mutex::default(),
            sent: Mutex::default(),
            reopen: AtomicBool::new(false),
            era: Mutex::new(Era::Legacy),
            capabilities: Mutex::default(),
            task_support: Mutex::default(),
            results: Mutex::default(),
            asked: Mutex::default(),
            declared: Mutex::default(),
        }
    }
}

/// One call as it reached a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) arguments: Option<String>,
    /// Of the call alone.
    pub(crate) headers: Vec<(String, String)>,
    /// Of every request of the session.
    pub(crate) session_headers: Vec<(String, String)>,
    pub(crate) meta: Vec<(String, String)>,
    /// Whether the call asks for a task, or says that it may be answered by one.
    pub(crate) task: bool,
}

fn exposed(headers: &[(String, Secret)]) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect()
}

impl Fake {
    fn rises(counter: &AtomicUsize, most: &AtomicUsize) {
        most.fetch_max(counter.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    }
}

/// The connector around a fake.
pub(crate) struct FakeConnector(pub(crate) Arc<Fake>);

impl Connector for FakeConnector {
    fn open(&self, request: OpenSession) -> BoxFuture<'static, Result<Arc<dyn Session>, OpenError>> {
        let fake = self.0.clone();
        Box::pin(async move {
            assert!(!fake.panicking.contains(&request.server.name.as_str()), "it was told to");
            Fake::rises(&fake.alive, &fake.most_alive);
            Fake::rises(&fake.opening, &fake.most_opening);
            let count = fake.opened.fetch_add(1, Ordering::SeqCst) + 1;
            let name = request.server.name.as_str().to_owned();
            let bring_up = async {
                if fake.hanging.contains(&name.as_str()) || fake.stalled.load(Ordering::SeqCst) {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(fake.open_takes).await;
            };
            let failed = tokio::select! {
                () = bring_up => None,
                () = request.abandoned => Some(OpenError::Abandoned),
                () = tokio::time::sleep(request.timeout.unwrap_or(Duration::MAX)) => {
                    Some(OpenError::Timeout { message: format!("server `{name}` was too slow") })
                }
            };
            fake.opening.fetch_sub(1, Ordering::SeqCst);
            let unlucky = fake.fail_every != 0 && count.is_multiple_of(fake.fail_every);
            let unlucky = unlucky || fake.down.load(Ordering::SeqCst);
            let failed = failed
                .or_else(|| (unlucky || fake.failing.contains(&name.as_str())).then(|| OpenError::Exited(died())));
            let is_refused = request.credentials.headers.iter().any(|(_, value)| value.expose() == REFUSED);
            let failed = failed.or_else(|| is_refused.then(|| OpenError::Denied(format!("server `{name}` says no"))));
            if let Some(error) = failed {
                let close_takes = *fake.close_takes.lock().unwrap();
                tokio::time::sleep(close_takes).await;
                fake.alive.fetch_sub(1, Ordering::SeqCst);
                return Err(error);
            }
            fake.sinks.lock().unwrap().push((request.label, request.events.clone()));
            let (end, _) = watch::channel(None);
            let (era, capabilities) = (*fake.era.lock().unwrap(), *fake.capabilities.lock().unwrap());
            fake.declared.lock().unwrap().push(serde_json::Value::Object(request.server.task_profile()).to_string());
            let session = FakeSession {
                fake,
                events: request.events,
                headers: exposed(&request.credentials.headers),
                count: AtomicU64::new(0),
                end,
                closed: Arc::new(AtomicBool::new(false)),
                facts: SessionFacts {
                    era,
                    version: "2025-11-25".into(),
                    stateful: true,
                    pid: Some(u32::try_from(count).unwrap()),
                    server_info: None,
                    capabilities: capabilities.map(|text| Arc::from(raw(text))),
                },
            };
            Ok(Arc::new(session) as Arc<dyn Session>)
        })
    }
}

fn died() -> Disconnect {
    Disconnect { reason: "the server exited".into(), exit: Some(Exit::Code(7)), stderr: "ImportError: fake".into() }
}

struct FakeSession {
    fake: Arc<Fake>,
    events: EventSink,
    headers: Vec<(String, String)>,
    count: AtomicU64,
    end: watch::Sender<Option<Disconnect>>,
    closed: Arc<AtomicBool>,
    facts: SessionFacts,
}

impl Session for FakeSession {
    fn facts(&self) -> &SessionFacts {
        &self.facts
    }

    fn call_tool(&self, call: ToolCall) -> BoxFuture<'_, Result<Box<RawValue>, CallError>> {
        Box::pin(async move {
            self.fake.calls.fetch_add(1, Ordering::SeqCst);
            self.fake.sent.lock().unwrap().push(Sent {
                arguments: call.arguments.as_ref().map(|arguments| arguments.get().to_owned()),
                headers: exposed(&call.headers),
                session_headers: self.headers.clone(),
                meta: call.meta.iter().map(|(name, value)| (name.clone(), value.get().to_owned())).collect(),
                task: call.task.is_some(),
            });
            let scripted = self.fake.results.lock().unwrap().get(&*call.name).cloned();
            if let Some(scripted) = scripted {
                return Ok(raw(&scripted));
            }
            let mut dropped = Dropped(Some(self.fake.clone()));
            let answer = match &*call.name {
                "hang" => {
                    let mut end = self.end.subscribe();
                    let ended = end.wait_for(Option::is_some).await;
                    Err(CallError::Disconnected { disconnect: ended.unwrap().clone().unwrap(), sent: true })
                }
                // Hears of the end of its session long after everybody else.
                "linger" => {
                    let mut end = self.end.subscribe();
                    let ended = end.wait_for(Option::is_some).await.unwrap().clone().unwrap();
                    tokio::time::sleep(Duration::from_secs(60)).await;
                    Err(CallError::Disconnected { disconnect: ended, sent: true })
                }
                "die" => {
                    self.end.send_replace(Some(died()));
                    Err(CallError::Disconnected { disconnect: died(), sent: true })
                }
                "unsent" if self.count.fetch_add(1, Ordering::SeqCst) == 0 && self.facts.pid < Some(3) => {
                    Err(CallError::Disconnected { disconnect: died(), sent: false })
                }
                "error" => Err(CallError::Rpc { code: -32602, message: "no such thing".into(), data: None }),
                "slow" => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    Ok(raw(&self.facts.pid.unwrap().to_string()))
                }
                "reopen" => {
                    if self.fake.reopen.swap(false, Ordering::SeqCst) {
                        (self.events)(SessionEvent::Reopened);
                    }
                    Ok(raw("null"))
                }
                _ => {
                    Ok(raw(&format!("[{},{}]", self.facts.pid.unwrap(), self.count.fetch_add(1, Ordering::SeqCst) + 1)))
                }
            };
            dropped.0 = None;
            answer
        })
    }

    fn request(&self, request: RawRequest) -> BoxFuture<'_, Result<Box<RawValue>, CallError>> {
        self.fake.asked.lock().unwrap().push(request.method.clone().into_owned());
        let result = self.fake.results.lock().unwrap().get(&*request.method).map(|text| raw(text));
        let message = format!("no {}", request.method);
        let answer = result.ok_or(CallError::Rpc { code: -32601, message, data: None });
        Box::pin(std::future::ready(answer))
    }

    fn task_questions(&self, _: &str) -> BoxFuture<'_, Result<Vec<TaskQuestion>, CallError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn answer_task(&self, _: &str, _: &str, _: Box<RawValue>) -> BoxFuture<'_, Result<bool, CallError>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<ToolListing, CallError>> {
        Box::pin(async move {
            self.fake.listed.fetch_add(1, Ordering::SeqCst);
            self.fake.listed_with_headers.fetch_add(usize::from(!self.headers.is_empty()), Ordering::SeqCst);
            let names = self.fake.tools.lock().unwrap().clone();
            let support = self.fake.task_support.lock().unwrap().clone();
            let tool = |name: &String| {
                let stated =
                    support.get(name.as_str()).map(|word| format!(r#","execution":{{"taskSupport":"{word}"}}"#));
                let stated = stated.unwrap_or_default();
                Arc::from(raw(&format!(r#"{{"name":"{name}","inputSchema":{{}}{stated}}}"#)))
            };
            Ok(ToolListing { tools: names.iter().map(tool).collect(), warnings: Vec::new() })
        })
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let (fake, closed) = (self.fake.clone(), self.closed.clone());
        self.end.send_replace(Some(died()));
        Box::pin(async move {
            let close_takes = *fake.close_takes.lock().unwrap();
            tokio::time::sleep(close_takes).await;
            if !closed.swap(true, Ordering::SeqCst) {
                fake.alive.fetch_sub(1, Ordering::SeqCst);
            }
        })
    }

    fn ended(&self) -> BoxFuture<'static, Disconnect> {
        let mut end = self.end.subscribe();
        Box::pin(async move {
            let ended = end.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
            match ended {
                Some(ended) => ended,
                None => std::future::pending().await,
            }
        })
    }

    fn stderr_tail(&self) -> String {
        String::new()
    }
}

/// Counts a call whose future was dropped before its answer.
struct Dropped(Option<Arc<Fake>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        if let Some(fake) = self.0.take() {
            fake.cancelled.fetch_add(1, Ordering::SeqCst);
        }
    }
}

pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// A server as the configuration would give it.
pub(crate) fn server(name: &str, change: impl FnOnce(&mut ServerConfig)) -> ServerEntry {
    let text = json!({"mcpServers": {name: {"command": "fake"}}}).to_string();
    let source = Source { file: Path::new("/test.json"), text: text.as_bytes() };
    let document = parse(&source, &|_| None).unwrap();
    let mut config = ServerConfig::clone(document.servers[0].config.as_ref().unwrap());
    change(&mut config);
    ServerEntry { name: ServerName::from(name), config: Ok(Arc::new(config)) }
}

pub(crate) fn remote(config: &mut ServerConfig) {
    config.transport = Transport::Http(Remote { url: "http://127.0.0.1:1/mcp".into(), headers: vec![] });
}

pub(crate) async fn start(fake: &Arc<Fake>, servers: Vec<ServerEntry>, options: Options) -> Runtime {
    Runtime::start(servers, options, Arc::new(FakeConnector(fake.clone())), BootId::from("boot")).await.unwrap()
}

/// Whoever calls while identity is off.
pub(crate) fn anybody() -> Caller {
    Caller::local(Door::Library)
}

/// A call of `name` in `thread`.
pub(crate) fn call(name: &str, thread: &str) -> CallTool {
    CallTool {
        name: name.into(),
        arguments: None,
        meta: Vec::new(),
        caller: anybody(),
        secrets: RequestSecrets::default(),
        run_id: None,
        tool_call_id: None,
        scope: Scope::new(Some("ann"), Some(thread)),
        task: Wish::Unsaid,
        timeout: None,
        progress: None,
        shape: Shape::Raw,
        request_id: RequestId::from("r"),
    }
}
