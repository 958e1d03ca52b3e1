//! A channel whose answers are written down beforehand, for tests of what stands above channels.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou_core::config::{ServerConfig, Source, parse};
use caribou_ports::BoxFuture;
use caribou_ports::mcp::{CallError, Disconnect};
use serde_json::json;
use serde_json::value::RawValue;

use crate::channel::{Awaited, Channel, Opening, RequestExtras};
use crate::server_asks::ServerAsks;
use crate::wire::errors::VERSION_UNSUPPORTED;
use crate::wire::ids::Outcome;

/// What a scripted server does with a request.
pub(crate) enum Says {
    /// Answers with this result.
    Result(&'static str),
    /// Answers with this error.
    Error(i64, &'static str),
    /// Refuses the revision, with this `data`.
    Unsupported(&'static str),
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
                Says::Unsupported(data) => {
                    let data = RawValue::from_string(data.to_owned()).expect("valid JSON");
                    let message = "unsupported".to_owned();
                    Err(CallError::Rpc { code: VERSION_UNSUPPORTED, message, data: Some(Arc::from(data)) })
                }
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
    let text =
        json!({"mcpServers": {"fake": {"command": command, "args": args, "session_init_timeout": null}}}).to_string();
    let source = Source { file: Path::new("/test.json"), text: text.as_bytes() };
    let document = parse(&source, &|_| None).expect("a document");
    ServerConfig::clone(document.servers[0].config.as_ref().expect("a server"))
}

/// A bring-up of `server` that nobody listens to.
pub(crate) fn opening(server: ServerConfig) -> Opening {
    let asks = Arc::new(ServerAsks::new(&server, Arc::new(|_| {})));
    Opening {
        server: Arc::new(server),
        label: "fake/ann:t1".to_owned(),
        credentials: caribou_ports::mcp::Credentials::default(),
        folder: None,
        watch_lists: false,
        resume: None,
        asks,
        eras: Arc::default(),
        era_probe: Duration::from_secs(5),
        max_message_bytes: 1024 * 1024,
        awaited: Arc::new(Awaited::default()),
    }
}
