//! An upstream that says what a test wrote down, and notes what it was asked.

use std::collections::VecDeque;
use std::sync::Mutex;

use caribou_core::config::{ServerConfig, TaskToolset};
use caribou_core::failure::Code;
use caribou_core::task::{RpcError, TaskId};
use caribou_ports::BoxFuture;
use caribou_ports::mcp::TaskQuestion;
use caribou_ports::task_driver::{RemoteError, TaskHandle, Upstream};
use serde_json::value::RawValue;

use crate::scripted::stdio_server;

/// What is said to a request.
pub(super) enum Says {
    Result(String),
    Rpc(i64, &'static str),
    Lost,
}

pub(super) struct Script {
    says: Mutex<VecDeque<Says>>,
    /// What was asked: the method or tool, and the parameters or arguments.
    pub(super) seen: Mutex<Vec<String>>,
    questions: Vec<TaskQuestion>,
    server: ServerConfig,
}

impl Script {
    /// Answers with these, in order.
    pub(super) fn new(says: impl IntoIterator<Item = Says>) -> Self {
        let mut server = stdio_server(&["x"]);
        let toolset = |name: &str, input: Option<&str>| TaskToolset {
            name: name.to_owned(),
            submit_tool: format!("{name}_start"),
            status_tool: format!("{name}_status"),
            cancel_tool: format!("{name}_cancel"),
            input_tool: input.map(str::to_owned),
        };
        server.task_toolsets = vec![toolset("mute", None), toolset("report", Some("report_input"))];
        Self { says: Mutex::new(says.into_iter().collect()), seen: Mutex::default(), questions: Vec::new(), server }
    }

    /// Asks this of its tasks.
    pub(super) fn asking(self, questions: Vec<TaskQuestion>) -> Self {
        Self { questions, ..self }
    }

    /// What was asked, and nothing more was expected.
    pub(super) fn seen(&self) -> Vec<String> {
        assert!(self.says.lock().unwrap().is_empty(), "less was asked than was scripted");
        self.seen.lock().unwrap().clone()
    }

    fn ask(&self, asked: String) -> BoxFuture<'_, Result<Box<RawValue>, RemoteError>> {
        self.seen.lock().unwrap().push(asked);
        let says = self.says.lock().unwrap().pop_front().expect("more is asked than was scripted");
        Box::pin(std::future::ready(match says {
            Says::Result(json) => Ok(RawValue::from_string(json).expect("valid JSON")),
            Says::Rpc(code, message) => {
                let rpc = Some(RpcError { code, message: message.to_owned(), data: None });
                Err(RemoteError { rpc, ..RemoteError::new(Code::UpstreamError, message) })
            }
            Says::Lost => Err(RemoteError::new(Code::OutcomeUnknown, "the stream broke off")),
        }))
    }
}

impl Upstream for Script {
    fn call_tool(
        &self,
        raw_name: &str,
        arguments: Option<Box<RawValue>>,
        task: Option<Box<RawValue>>,
    ) -> BoxFuture<'_, Result<Box<RawValue>, RemoteError>> {
        let arguments = arguments.as_deref().map_or("-", RawValue::get);
        let task = task.map_or_else(String::new, |task| format!(" as task {}", task.get()));
        self.ask(format!("{raw_name} {arguments}{task}"))
    }

    fn request(
        &self,
        method: &'static str,
        params: Box<RawValue>,
    ) -> BoxFuture<'_, Result<Box<RawValue>, RemoteError>> {
        self.ask(format!("{method} {}", params.get()))
    }

    fn task_questions(&self, remote_id: &str) -> BoxFuture<'_, Result<Vec<TaskQuestion>, RemoteError>> {
        self.seen.lock().unwrap().push(format!("questions of {remote_id}"));
        Box::pin(std::future::ready(Ok(self.questions.clone())))
    }

    fn answer_task(
        &self,
        remote_id: &str,
        question: &str,
        answer: Box<RawValue>,
    ) -> BoxFuture<'_, Result<bool, RemoteError>> {
        self.seen.lock().unwrap().push(format!("answer of {remote_id} {question} {}", answer.get()));
        let asked = self.questions.iter().any(|known| known.name == question);
        Box::pin(std::future::ready(Ok(asked)))
    }

    fn server(&self) -> &ServerConfig {
        &self.server
    }

    fn session_id(&self) -> Option<String> {
        None
    }
}

/// Says this result of a tool: `structuredContent`.
pub(super) fn tool(structured: &str) -> Says {
    Says::Result(format!(r#"{{"content":[],"structuredContent":{structured}}}"#))
}

/// Says this result.
pub(super) fn result(json: &str) -> Says {
    Says::Result(json.to_owned())
}

/// A task of the toolset, or tool, `report`.
pub(super) fn handle() -> TaskHandle<'static> {
    TaskHandle { task: local(), task_name: "report", remote_id: "r", driver_data: r#"{"ttl_ms":60000.0}"# }
}

/// The local name of every task here.
pub(super) fn local() -> TaskId {
    TaskId([7; 16])
}
