//! One session of a real server as the way of a driver to it, without the runtime in between.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::{ServerConfig, Source, parse};
use caribou_core::ids::BootId;
use caribou_core::task::RpcError;
use caribou_mcp::{DirectHost, UpstreamOptions, Upstreams};
use caribou_ports::BoxFuture;
use caribou_ports::mcp::{CallError, Connector, Credentials, OpenSession, RawRequest, Session, TaskQuestion, ToolCall};
use caribou_ports::task_driver::{RemoteError, Upstream};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// How long a server may take to start on a loaded machine.
const START: Duration = Duration::from_secs(60);

pub(super) struct OverSession {
    server: Arc<ServerConfig>,
    session: Arc<dyn Session>,
}

impl OverSession {
    /// Opens a session with a server of `mcpServers` that is told of these capabilities.
    pub(super) async fn open(mut entry: Value, capabilities: Value) -> Self {
        entry["client_capabilities"] = capabilities;
        let text = json!({ "mcpServers": { "s": entry } }).to_string();
        let source = Source { file: Path::new("/test.json"), text: text.as_bytes() };
        let server = parse(&source, &|_| None).unwrap().servers[0].config.clone().unwrap();
        let options =
            UpstreamOptions { inherit_env: vec!["PATH".to_owned()], ..UpstreamOptions::new(BootId::from("b")) };
        let upstreams = Upstreams::new(options, Arc::new(DirectHost)).unwrap();
        let request = OpenSession {
            server: Arc::clone(&server),
            label: "s/ann:t1".to_owned(),
            folder: None,
            timeout: Some(START),
            abandoned: Box::pin(std::future::pending()),
            watch_lists: false,
            resume: None,
            credentials: Credentials::default(),
            events: Arc::new(|_| {}),
        };
        let session = upstreams.open(request).await.unwrap_or_else(|error| panic!("not opened: {error}"));
        Self { server, session }
    }

    pub(super) async fn close(self) {
        self.session.close().await;
    }
}

fn remote(error: CallError) -> RemoteError {
    let (code, detail) = (error.code(), error.to_string());
    let rpc = match error {
        CallError::Rpc { code, message, data } => {
            Some(RpcError { code, message, data: data.map(|data| (*data).to_owned()) })
        }
        _ => None,
    };
    RemoteError { rpc, ..RemoteError::new(code, detail) }
}

impl Upstream for OverSession {
    fn call_tool(
        &self,
        raw_name: &str,
        arguments: Option<Box<RawValue>>,
        task: Option<Box<RawValue>>,
    ) -> BoxFuture<'_, Result<Box<RawValue>, RemoteError>> {
        let (name, meta, headers) = (raw_name.into(), Vec::new(), Vec::new());
        let call = ToolCall { name, arguments, meta, headers, progress: None, task };
        Box::pin(async move { self.session.call_tool(call).await.map_err(remote) })
    }

    fn request(
        &self,
        method: &'static str,
        params: Box<RawValue>,
    ) -> BoxFuture<'_, Result<Box<RawValue>, RemoteError>> {
        let request = RawRequest { method: method.into(), params, headers: Vec::new(), progress: None };
        Box::pin(async move { self.session.request(request).await.map_err(remote) })
    }

    fn task_questions(&self, remote_id: &str) -> BoxFuture<'_, Result<Vec<TaskQuestion>, RemoteError>> {
        let remote_id = remote_id.to_owned();
        Box::pin(async move { self.session.task_questions(&remote_id).await.map_err(remote) })
    }

    fn answer_task(
        &self,
        remote_id: &str,
        question: &str,
        answer: Box<RawValue>,
    ) -> BoxFuture<'_, Result<bool, RemoteError>> {
        let (remote_id, question) = (remote_id.to_owned(), question.to_owned());
        Box::pin(async move { self.session.answer_task(&remote_id, &question, answer).await.map_err(remote) })
    }

    fn server(&self) -> &ServerConfig {
        &self.server
    }

    fn session_id(&self) -> Option<String> {
        None
    }
}
