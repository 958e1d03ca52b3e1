//! What a server asks and tells on its own, on any transport, before or after the handshake.
//!
//! Owns the answers: `ping` is answered, `elicitation/create` is kept for whoever follows the task that it belongs to
//! and declined otherwise, where we declared it; everything else is refused. Owns where notices go: list changes to the session's events, progress and log messages to the call they
//! belong to, the rest nowhere. Does not write the answers.

use std::sync::Arc;

use caribou_core::config::ServerConfig;
use caribou_ports::mcp::{EventSink, Oddity, Progress, SessionEvent};
use serde_json::value::RawValue;
use tracing::debug;

use crate::tasks::questions::{Questions, Reply, related_task};
use crate::wire::envelope::{self, Refusal};
use crate::wire::errors::METHOD_NOT_FOUND;
use crate::wire::ids::Pending;
use crate::wire::progress::{self, ProgressRoute};

/// Answers one server.
pub(crate) struct ServerAsks {
    server: Arc<str>,
    declares_elicitation: bool,
    events: EventSink,
    questions: Arc<Questions>,
}

/// Who may receive progress and log messages that come in.
pub(crate) enum Listeners<'a> {
    /// Any request of a channel that all of them share.
    Shared(&'a Pending),
    /// The one request on whose own stream they came.
    Own(Option<&'a ProgressRoute>),
}

impl ServerAsks {
    /// For `server`, as its profile declares.
    pub(crate) fn new(server: &ServerConfig, events: EventSink) -> Self {
        let declares_elicitation = server.profile().contains_key("elicitation");
        Self { server: server.name.as_str().into(), declares_elicitation, events, questions: Arc::default() }
    }

    /// The complete answer to a request of the server. `None` = somebody will answer it later, through `reply`.
    pub(crate) fn answer(
        &self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        reply: impl FnOnce() -> Reply,
    ) -> Option<Vec<u8>> {
        let granted = match method {
            "ping" => raw("{}"),
            "elicitation/create" if self.declares_elicitation => {
                let related = params.and_then(|params| Some((params, related_task(params)?)));
                if related.is_some_and(|(params, task)| self.questions.keep(task, id, method, params, reply)) {
                    return None;
                }
                raw(r#"{"action":"decline"}"#)
            }
            _ => {
                debug!(server = %self.server, method, "refused a request of the server");
                None
            }
        };
        Some(envelope::response(id, granted.ok_or(NOT_OFFERED)))
    }

    /// What the server asks about its tasks.
    pub(crate) fn questions(&self) -> &Arc<Questions> {
        &self.questions
    }

    /// Routes a notice of the server.
    pub(crate) fn notice(&self, method: &str, params: Option<&RawValue>, listeners: Listeners<'_>) {
        match (method, params) {
            ("notifications/tools/list_changed", _) => (self.events)(SessionEvent::ToolsChanged),
            ("notifications/progress", Some(params)) => listeners.progress(params),
            ("notifications/message", Some(params)) => listeners.message(params),
            // Nothing else that the server could cancel runs here: its requests are answered at once.
            ("notifications/cancelled", Some(params)) => self.questions.taken_back(params),
            _ => {}
        }
    }

    /// Tells the session's owner of an oddity.
    pub(crate) fn odd(&self, oddity: Oddity) {
        (self.events)(SessionEvent::Oddity(oddity));
    }

    /// The waiting requests of a channel of this session.
    pub(crate) fn pending(&self) -> Arc<Pending> {
        Pending::new(Arc::clone(&self.events))
    }

    /// Tells the session's owner that the server forgot the session and a new one was opened.
    pub(crate) fn reopened(&self) {
        (self.events)(SessionEvent::Reopened);
    }
}

/// We declare nothing that a server could ask for, beside what is answered above.
const NOT_OFFERED: Refusal = Refusal { code: METHOD_NOT_FOUND, message: "this client does not offer that" };

/// A JSON text of ours.
fn raw(text: &'static str) -> Option<&'static RawValue> {
    serde_json::from_str(text).ok()
}

impl Listeners<'_> {
    fn progress(&self, params: &RawValue) {
        let Some((token, report)) = progress::split(params) else { return };
        match self {
            Self::Shared(pending) => pending.progress(token, &report),
            Self::Own(Some(route)) if route.token == token => (route.sink)(Progress::Progress(Arc::from(report))),
            Self::Own(_) => {}
        }
    }

    fn message(&self, params: &RawValue) {
        match self {
            Self::Shared(pending) => pending.message(params),
            Self::Own(Some(route)) => (route.sink)(Progress::Message(Arc::from(params.to_owned()))),
            Self::Own(None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use caribou_core::task::NativeTasks;

    use super::*;
    use crate::scripted::stdio_server;

    fn without_tasks() -> ServerConfig {
        ServerConfig { native_tasks: NativeTasks::Off, ..stdio_server(&["x"]) }
    }

    fn answered(asks: &ServerAsks, method: &str) -> String {
        let id: &RawValue = serde_json::from_str("\"q-1\"").expect("valid JSON");
        String::from_utf8(asks.answer(id, method, None, || unreachable!("not kept")).expect("answered")).expect("UTF-8")
    }

    #[test]
    fn a_ping_is_answered_and_what_is_not_offered_is_refused() {
        let asks = ServerAsks::new(&without_tasks(), Arc::new(|_| {}));
        assert_eq!(answered(&asks, "ping"), r#"{"jsonrpc":"2.0","id":"q-1","result":{}}"#);
        for method in ["sampling/createMessage", "roots/list", "elicitation/create", "x/unknown"] {
            assert!(answered(&asks, method).contains(r#""error":{"code":-32601,"#), "{method}");
        }
    }

    #[test]
    fn an_elicitation_that_was_declared_is_declined() {
        let server = stdio_server(&["x"]);
        let asks = ServerAsks::new(&server, Arc::new(|_| {}));
        assert!(answered(&asks, "elicitation/create").ends_with(r#""result":{"action":"decline"}}"#));
    }

    #[test]
    fn an_elicitation_of_a_task_is_kept_where_it_was_declared() {
        // mcp.md §9.1, input.
        let mut server = without_tasks();
        let related = r#"{"message":"?","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}"#;
        let asked = |server: &ServerConfig, method: &str| {
            let asks = ServerAsks::new(server, Arc::new(|_| {}));
            let (id, params) = (raw("5").expect("valid JSON"), raw(related));
            let answer = asks.answer(id, method, params, || Box::new(|_| Box::pin(std::future::ready(Ok(())))));
            (answer.is_some(), asks.questions().of("t1").len())
        };
        assert_eq!(asked(&server, "elicitation/create"), (true, 0), "refused");
        server.native_tasks = NativeTasks::Auto;
        assert_eq!(asked(&server, "elicitation/create"), (false, 1));
        assert_eq!(asked(&server, "sampling/createMessage"), (true, 0), "not offered");
    }

    #[test]
    fn only_changes_of_the_tool_list_are_events() {
        // Contract 5.3, remote tools/list, as architecture.md §10 amends it.
        let told = Arc::new(Mutex::new(Vec::new()));
        let events = Arc::clone(&told);
        let asks = ServerAsks::new(&stdio_server(&["x"]), Arc::new(move |event| events.lock().unwrap().push(event)));
        let pending = asks.pending();
        for method in ["tools/list_changed", "resources/list_changed", "cancelled", "progress", "message"] {
            asks.notice(&format!("notifications/{method}"), None, Listeners::Shared(&pending));
        }
        assert_eq!(*told.lock().unwrap(), [SessionEvent::ToolsChanged]);
    }
}
