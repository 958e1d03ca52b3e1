//! A channel whose answers are written down beforehand, for tests of what stands above channels.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou_core::config::{ServerConfig, Stdio, Transport};
use caribou_core::era::Protocol;
use caribou_core::masker::Masker;
use caribou_ports::BoxFuture;
use caribou_ports::mcp::{CallError, Disconnect};
use serde_json::value::RawValue;

use crate::channel::{Awaited, Channel, Opening, RequestExtras};
use crate::server_asks::ServerAsks;
use crate::wire::ids::Outcome;

/// What a scripted server does with a request.
pub(crate) enum Says {
    /// Answers with this result.
    Result(&'static str),
    /// Answers with this error.
    Error(i64, &'static str),
    /// Ends.
    Ends,
    /// Never answers.
    Nothing,
}

/// The channel.
#[derive(Default)]
pub(crate) struct Scripted {
    script: Mutex<VecDeque<Says>>,
    /// What was sent: method and parameters.
    pub(crate) seen: Mutex<Vec<(String, String)>>,
}

impl Scripted {
    pub(crate) fn new(script: impl IntoIterator<Item = Says>) -> Arc<Self> {
        Arc::new(Self { script: Mutex::new(script.into_iter().collect()), seen: Mutex::default() })
    }

    /// The methods sent, in order.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|(method, _)| method.clone()).collect()
    }

    fn see(&self, method: &str, params: Option<&RawValue>) {
        let params = params.map_or_else(String::new, |params| params.get().to_owned());
        self.seen.lock().unwrap().push((method.to_owned(), params));
    }
}

impl Channel for Scripted {
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Option<Box<RawValue>>,
        _extras: RequestExtras,
    ) -> BoxFuture<'a, Outcome> {
        self.see(method, params.as_deref());
        let says = self.script.lock().unwrap().pop_front().expect("more is asked than was scripted");
        Box::pin(async move {
            match says {
                Says::Result(json) => Ok(RawValue::from_string(json.to_owned()).expect("valid JSON")),
                Says::Error(code, message) => Err(CallError::Rpc { code, message: message.to_owned(), data: None }),
                Says::Ends => {
                    let disconnect = Disconnect { reason: "it ended".to_owned(), exit: None, stderr: String::new() };
                    Err(CallError::Disconnected { disconnect, sent: true })
                }
                Says::Nothing => std::future::pending().await,
            }
        })
    }

    fn notify<'a>(&'a self, method: &'a str, params: Option<Box<RawValue>>) -> BoxFuture<'a, Result<(), CallError>> {
        self.see(method, params.as_deref());
        Box::pin(std::future::ready(Ok(())))
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn ended(&self) -> BoxFuture<'static, Disconnect> {
        Box::pin(std::future::pending())
    }
}

/// A stdio server with nothing special about it.
pub(crate) fn stdio_server(argv: &[&str]) -> ServerConfig {
    let (command, args) = argv.split_first().expect("a command");
    ServerConfig {
        name: "fake".into(),
        enabled: true,
        transport: Transport::Stdio(Stdio {
            command: (*command).to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            ..Stdio::default()
        }),
        description: String::new(),
        routing: caribou_core::config::Routing::default(),
        tools: Vec::new(),
        tool_name_prefix: true,
        tool_call_timeout: None,
        tool_call_idle_timeout: None,
        session_init_timeout: None,
        oauth: None,
        user_auth: None,
        headers_from_context: None,
        task_toolsets: Vec::new(),
        protocol: Protocol::Auto,
        client_capabilities: serde_json::Map::new(),
        max_tool_result_bytes: None,
        allowed_redirect_origins: Vec::new(),
        message_url: None,
        masker: Masker::default(),
        extra: Default::default(),
    }
}

/// A bring-up of `server` that nobody listens to.
pub(crate) fn opening(server: ServerConfig) -> Opening {
    let asks = Arc::new(ServerAsks::new(&server, Arc::new(|_| {})));
    Opening {
        server: Arc::new(server),
        label: "fake/ann:t1".to_owned(),
        folder: None,
        watch_lists: false,
        asks,
        eras: Arc::default(),
        era_probe: Duration::from_secs(5),
        max_message_bytes: 1024 * 1024,
        awaited: Arc::new(Awaited::default()),
    }
}
