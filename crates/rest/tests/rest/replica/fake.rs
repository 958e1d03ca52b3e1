//! A server inside this process: behind a connector, no process, no socket.

use std::path::Path;
use std::sync::Arc;

use caribou_core::config::{Routing, ServerConfig, ServerEntry, Source, parse};
use caribou_core::era::Era;
use caribou_core::ids::BootId;
use caribou_ports::BoxFuture;
use caribou_ports::identity::Authenticator;
use caribou_ports::mcp::{
    CallError, Connector, Disconnect, OpenError, OpenSession, Progress, RawRequest, Session, SessionFacts,
    TaskQuestion, ToolCall, ToolListing,
};
use caribou_runtime::{Options, Outside, Runtime};
use serde_json::value::RawValue;
use tokio::sync::Notify;

/// What the tests steer the server by, and what it tells them. Its tools: `echo` answers with its arguments as they
/// came, `wait` reports twice and answers when told to, `flood` reports a thousand times at once,
/// `refuse` answers with a JSON-RPC error.
#[derive(Clone, Default)]
pub(crate) struct FakeServer {
    /// Lets one `wait` answer.
    pub(crate) release: Arc<Notify>,
    /// Told when a call is dropped before its answer.
    pub(crate) cancelled: Arc<Notify>,
    /// What its tools are preferred for.
    pub(crate) routing: Routing,
}

/// A running replica with this server alone, named `fake`.
pub(crate) async fn replica(server: &FakeServer, options: Options) -> Runtime {
    replica_for(server, options, None).await
}

/// The same for callers that are told apart.
pub(crate) async fn replica_for(
    server: &FakeServer,
    options: Options,
    authenticator: Option<Arc<dyn Authenticator>>,
) -> Runtime {
    let config = ServerEntry { name: "fake".into(), config: Ok(Arc::new(config(server))) };
    let outside = Outside { authenticator, ..Outside::from(Arc::new(server.clone())) };
    Box::pin(Runtime::start(vec![config], options, outside, BootId::new("boot-1"))).await.expect("it starts")
}

fn config(server: &FakeServer) -> ServerConfig {
    let text = br#"{"mcpServers": {"fake": {"command": "fake", "tool_name_prefix": false}}}"#;
    let document = parse(&Source { file: Path::new("/test.json"), text }, &|_| None).expect("a document");
    let config = ServerConfig::clone(document.servers[0].config.as_ref().expect("a server"));
    ServerConfig { routing: server.routing.clone(), ..config }
}

pub(crate) fn raw(text: impl Into<String>) -> Box<RawValue> {
    RawValue::from_string(text.into()).expect("JSON")
}

impl Connector for FakeServer {
    fn open(&self, _: OpenSession) -> BoxFuture<'static, Result<Arc<dyn Session>, OpenError>> {
        let facts = SessionFacts {
            era: Era::Legacy,
            version: "2025-11-25".into(),
            stateful: true,
            pid: None,
            server_info: Some(raw(r#"{"version":"1","name":"fake"}"#).into()),
            capabilities: None,
        };
        let session: Arc<dyn Session> = Arc::new(FakeSession { server: self.clone(), facts });
        Box::pin(async { Ok(session) })
    }
}

struct FakeSession {
    server: FakeServer,
    facts: SessionFacts,
}

/// Tells the test when it is dropped armed.
struct Cancellation {
    told: Arc<Notify>,
    armed: bool,
}

impl Drop for Cancellation {
    fn drop(&mut self) {
        if self.armed {
            self.told.notify_one();
        }
    }
}

impl FakeSession {
    async fn wait(&self, call: ToolCall) -> Box<RawValue> {
        let mut cancellation = Cancellation { told: self.server.cancelled.clone(), armed: true };
        if let Some(report) = call.progress {
            report(Progress::Progress(raw(r#"{"total":2.0,"progress":1}"#).into()));
            report(Progress::Message(raw(r#"{"level":"info","data":"half way"}"#).into()));
        }
        self.server.release.notified().await;
        cancellation.armed = false;
        raw("{\n  \"content\": []\n}")
    }
}

fn flood(call: &ToolCall) -> Box<RawValue> {
    for step in 0..1_000 {
        if let Some(report) = &call.progress {
            report(Progress::Progress(raw(format!(r#"{{"progress":{step}}}"#)).into()));
        }
    }
    raw("{}")
}

impl Session for FakeSession {
    fn facts(&self) -> &SessionFacts {
        &self.facts
    }

    fn call_tool(&self, call: ToolCall) -> BoxFuture<'_, Result<Box<RawValue>, CallError>> {
        Box::pin(async move {
            match &*call.name {
                "echo" => {
                    let arguments = call.arguments.as_deref().map_or(r#""absent""#, RawValue::get);
                    Ok(raw(format!(r#"{{"got":{arguments},"content":[]}}"#)))
                }
                "wait" => Ok(self.wait(call).await),
                "flood" => Ok(flood(&call)),
                _ => Err(CallError::Rpc { code: -32602, message: "no".into(), data: Some(raw(r#"{"f":1.0}"#).into()) }),
            }
        })
    }

    fn request(&self, request: RawRequest) -> BoxFuture<'_, Result<Box<RawValue>, CallError>> {
        let message = format!("no {}", request.method);
        Box::pin(std::future::ready(Err(CallError::Rpc { code: -32601, message, data: None })))
    }

    fn task_questions(&self, _: &str) -> BoxFuture<'_, Result<Vec<TaskQuestion>, CallError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn answer_task(&self, _: &str, _: &str, _: Box<RawValue>) -> BoxFuture<'_, Result<bool, CallError>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<ToolListing, CallError>> {
        let tool = |name: &str| {
            raw(format!(r#"{{"x-big":9223372036854775809,"name":"{name}","inputSchema":{{"type":"object"}}}}"#)).into()
        };
        let tools = ["echo", "wait", "flood", "refuse"].map(tool).into();
        Box::pin(async { Ok(ToolListing { tools, warnings: vec![] }) })
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }

    fn ended(&self) -> BoxFuture<'static, Disconnect> {
        Box::pin(std::future::pending())
    }

    fn stderr_tail(&self) -> String {
        String::new()
    }
}
