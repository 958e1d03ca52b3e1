//! What a server asks and tells on its own, on any transport, before or after the handshake.
//!
//! Owns the answers: `ping` is answered; of what we declared, a question is kept for whoever follows the task that it
//! belongs to, or for the caller of the call that it surely belongs to, and declined otherwise (mcp.md 14.4); everything
//! else is refused. Owns where notices go: list changes and ends of visits to the session's events, changes of resources to whoever watches
//! them, progress and log messages to the call they belong to, the rest nowhere. Does not write the answers.

use std::sync::Arc;

use caribou_core::config::ServerConfig;
use caribou_core::raw::Members;
use caribou_core::task::NativeTasks;
use caribou_ports::mcp::{EventSink, Oddity, Progress, SessionEvent};
use serde_json::value::RawValue;
use tracing::debug;

use crate::era::stateless::Announced;
use crate::parked::{Asker, Asking, Taken, declined, needs};
use crate::tasks::questions::{Questions, Reply, related_task};
use crate::visits::Visits;
use crate::watched::Watched;
use crate::wire::envelope::{self, Refusal};
use crate::wire::errors::METHOD_NOT_FOUND;
use crate::wire::ids::Pending;
use crate::wire::progress::{self, ProgressRoute};

/// Answers one server.
pub(crate) struct ServerAsks {
    server: Arc<str>,
    /// The capabilities by which it may ask something.
    declared: Vec<String>,
    /// Whether somebody follows its tasks, and can be asked about them.
    follows_tasks: bool,
    events: EventSink,
    questions: Arc<Questions>,
    watched: Watched,
    visits: Visits,
}

/// Who what comes in may be for: progress, log messages, questions.
pub(crate) enum Listeners<'a> {
    /// Any request of a channel that all of them share.
    Shared(&'a Pending),
    /// The one request on whose own stream it came.
    Own {
        /// Where its progress goes.
        progress: Option<&'a ProgressRoute>,
        /// Whether something may be asked in the middle of it.
        asker: &'a Asker,
    },
}

impl ServerAsks {
    /// For `server`, as its profile declares.
    pub(crate) fn new(server: &ServerConfig, events: EventSink) -> Self {
        let declared: Vec<String> = server.profile().into_iter().map(|(name, _)| name).collect();
        let follows_tasks = server.native_tasks == NativeTasks::Auto;
        let (questions, watched, visits) = (Arc::default(), Watched::default(), Visits::default());
        Self { server: server.name.as_str().into(), declared, follows_tasks, events, questions, watched, visits }
    }

    /// The complete answer to a request of the server. `None` = somebody will answer it later, through `reply`.
    pub(crate) fn answer(
        &self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        from: Listeners<'_>,
        reply: impl FnOnce() -> Reply,
    ) -> Option<Vec<u8>> {
        if method == "ping" {
            return Some(envelope::response(id, raw("{}").ok_or(NOT_OFFERED)));
        }
        if !needs(method).is_some_and(|capability| self.declared.iter().any(|declared| declared == capability)) {
            debug!(server = %self.server, method, "refused a request of the server");
            return Some(envelope::response(id, Err(NOT_OFFERED)));
        }
        let is_own = matches!(from, Listeners::Own { .. });
        let related = params.and_then(|params| Some((params, related_task(params)?)));
        let is_kept = match (related, from.asking()) {
            // Whoever follows tasks is asked nothing else (mcp.md §9.1).
            (Some((params, task)), _) => {
                let is_asked = self.follows_tasks && method == "elicitation/create";
                is_asked && self.questions.keep(task, id, method, params, reply)
            }
            (None, Some(asking)) => asking.take(id, method, params, is_own, reply) == Taken::Kept,
            (None, None) => false,
        };
        if let Some(params) = params.filter(|_| is_kept && method == "elicitation/create") {
            self.visits.asked(params);
        }
        if !is_kept {
            debug!(server = %self.server, method, "nobody can be asked what the server asks");
        }
        (!is_kept).then(|| declined(id, method))
    }

    /// What the server asks about its tasks.
    pub(crate) fn questions(&self) -> &Arc<Questions> {
        &self.questions
    }

    /// Routes a notice of the server.
    pub(crate) fn notice(&self, method: &str, params: Option<&RawValue>, listeners: Listeners<'_>) {
        match (method, params) {
            ("notifications/tools/list_changed", _) => (self.events)(SessionEvent::ToolsChanged),
            ("notifications/prompts/list_changed", _) => (self.events)(SessionEvent::PromptsChanged),
            ("notifications/resources/list_changed", _) => (self.events)(SessionEvent::ResourcesChanged),
            ("notifications/resources/updated", Some(params)) => match subscription(params) {
                Some(id) => listeners.of_subscription(id, Progress::Message(Arc::from(params.to_owned()))),
                None => self.watched.updated(params),
            },
            ("notifications/subscriptions/acknowledged", Some(params)) => {
                if let Some(id) = subscription(params) {
                    listeners.of_subscription(id, Progress::Progress(Arc::from(params.to_owned())));
                }
            }
            ("notifications/elicitation/complete", Some(params)) => {
                if let Some(visit) = self.visits.ended(params) {
                    (self.events)(SessionEvent::Visited(visit));
                }
            }
            ("notifications/progress", Some(params)) => listeners.progress(params),
            ("notifications/message", Some(params)) => listeners.message(params),
            // Nothing else that the server could cancel runs here: its other requests are answered at once.
            ("notifications/cancelled", Some(params)) => {
                self.questions.taken_back(params);
                if let Some(id) = Members::of(params).and_then(|params| params.get("requestId")) {
                    listeners.taken_back(id);
                }
            }
            _ => {}
        }
    }

    /// What of it is watched, in the legacy era.
    pub(crate) fn watched(&self) -> &Watched {
        &self.watched
    }

    /// The visits that it sends its callers on.
    pub(crate) fn visits(&self) -> &Visits {
        &self.visits
    }

    /// Nobody heard for a while: these lists, and whatever is watched, may be others by now (mcp.md 14.3).
    pub(crate) fn missed(&self, lists: Announced) {
        for (is_told, event) in [
            (lists.tools, SessionEvent::ToolsChanged),
            (lists.prompts, SessionEvent::PromptsChanged),
            (lists.resources, SessionEvent::ResourcesChanged),
        ] {
            if is_told {
                (self.events)(event);
            }
        }
        self.watched.missed();
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
        self.watched.lost();
    }
}

/// We declare nothing that a server could ask for, beside what is answered above.
const NOT_OFFERED: Refusal = Refusal { code: METHOD_NOT_FOUND, message: "this client does not offer that" };

/// A JSON text of ours.
fn raw(text: &'static str) -> Option<&'static RawValue> {
    serde_json::from_str(text).ok()
}

/// The request that a notice belongs to, in the modern era. One that comes back as a string is accepted, as with ids.
fn subscription(params: &RawValue) -> Option<u64> {
    let meta = Members::of(params).and_then(|params| params.get("_meta")).and_then(Members::of)?;
    meta.get("io.modelcontextprotocol/subscriptionId")?.get().trim_matches('"').parse().ok()
}

impl Listeners<'_> {
    /// The call that a question belongs to, if that is certain and its caller can be asked.
    fn asking(&self) -> Option<Arc<Asking>> {
        match self {
            Self::Shared(pending) => pending.asked_of(),
            Self::Own { asker: Asker::Open(asking), .. } => Some(Arc::clone(asking)),
            Self::Own { .. } => None,
        }
    }

    fn taken_back(&self, id: &RawValue) {
        match self {
            Self::Shared(pending) => pending.taken_back(id),
            Self::Own { asker: Asker::Open(asking), .. } => asking.taken_back(id),
            Self::Own { .. } => {}
        }
    }

    fn of_subscription(&self, id: u64, report: Progress) {
        match self {
            Self::Shared(pending) => pending.of_subscription(id, report),
            Self::Own { progress: Some(route), .. } if route.listens() => (route.sink)(report),
            Self::Own { .. } => {}
        }
    }

    fn progress(&self, params: &RawValue) {
        let Some((token, report)) = progress::split(params) else { return };
        match self {
            Self::Shared(pending) => pending.progress(token, &report),
            Self::Own { progress: Some(route), .. } if route.token == token => {
                (route.sink)(Progress::Progress(Arc::from(report)));
            }
            Self::Own { .. } => {}
        }
    }

    fn message(&self, params: &RawValue) {
        match self {
            Self::Shared(pending) => pending.message(params),
            Self::Own { progress: Some(route), .. } if !route.listens() => {
                (route.sink)(Progress::Message(Arc::from(params.to_owned())));
            }
            Self::Own { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::{Map, Value, json};

    use super::*;
    use crate::parked::tests::{asking, raw as text};
    use crate::scripted::stdio_server;

    const NOBODY: Listeners<'static> = Listeners::Own { progress: None, asker: &Asker::None };

    fn declaring(capabilities: &Value) -> ServerConfig {
        let declared: Map<String, Value> = capabilities.as_object().cloned().expect("an object");
        ServerConfig { client_capabilities: Some(declared), ..stdio_server(&["x"]) }
    }

    fn answered(asks: &ServerAsks, method: &str) -> String {
        let id = text("\"q-1\"");
        let answer = asks.answer(&id, method, None, NOBODY, || unreachable!("not kept")).expect("answered");
        String::from_utf8(answer).expect("UTF-8")
    }

    #[test]
    fn a_ping_is_answered_and_what_is_not_declared_is_refused() {
        let asks = ServerAsks::new(&declaring(&json!({})), Arc::new(|_| {}));
        assert_eq!(answered(&asks, "ping"), r#"{"jsonrpc":"2.0","id":"q-1","result":{}}"#);
        for method in ["sampling/createMessage", "roots/list", "elicitation/create", "x/unknown"] {
            assert!(answered(&asks, method).contains(r#""error":{"code":-32601,"#), "{method}");
        }
    }

    #[test]
    fn what_was_declared_and_belongs_to_no_call_is_declined() {
        // mcp.md 14.4.
        let asks = ServerAsks::new(&stdio_server(&["x"]), Arc::new(|_| {}));
        assert!(answered(&asks, "elicitation/create").ends_with(r#""result":{"action":"decline"}}"#));
        assert!(answered(&asks, "sampling/createMessage").contains(r#""error":{"code":-1,"#));
        assert!(answered(&asks, "roots/list").contains(r#""error":{"code":-32601,"#));
    }

    fn kept() -> Reply {
        Box::new(|_| Box::pin(std::future::ready(Ok(()))))
    }

    #[test]
    fn a_question_goes_to_the_only_call_that_runs_and_to_none_of_two() {
        // mcp.md 14.4, stdio; 14.7.
        let asks = ServerAsks::new(&stdio_server(&["x"]), Arc::new(|_| {}));
        let pending = asks.pending();
        let ask = || {
            let (id, params) = (text("5"), text(r#"{"message":"?"}"#));
            asks.answer(&id, "elicitation/create", Some(&params), Listeners::Shared(&pending), kept).is_none()
        };
        let list = pending.register(None).expect("open");
        assert!(!ask(), "servers ask nothing in the middle of a listing");
        let (one, other) = (asking(true), asking(true));
        let first = pending.register_call(None, Asker::Open(one.clone())).expect("open");
        assert!(ask());
        let second = pending.register_call(None, Asker::Deaf).expect("open");
        assert!(!ask(), "it may belong to the other");
        drop(second);
        let second = pending.register_call(None, Asker::Open(other.clone())).expect("open");
        assert!(!ask());
        one.park(true);
        assert!(ask(), "the first one waits for its caller");
        assert_eq!((one.tally(), other.tally()), (1, 1));
        drop(second);
        assert!(ask(), "nothing else runs");
        let (capabilities, caller) = (text(r#"{"elicitation":{}}"#), text(r#"{"principal":"bob"}"#));
        let stranger = Asking::of(&capabilities, Some(&caller)).expect("it can be asked");
        let third = pending.register_call(None, Asker::Open(stranger)).expect("open");
        assert!(!ask(), "invariant P1");
        asks.notice("notifications/cancelled", Some(&text(r#"{"requestId":5}"#)), Listeners::Shared(&pending));
        assert_eq!((one.tally(), other.tally()), (0, 1), "the other call is over");
        drop((list, first, third));
    }

    #[test]
    fn an_elicitation_of_a_task_is_kept_where_tasks_are_followed() {
        // mcp.md §9.1, input.
        let mut server = stdio_server(&["x"]);
        let related = r#"{"message":"?","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}"#;
        let asked = |server: &ServerConfig, method: &str| {
            let asks = ServerAsks::new(server, Arc::new(|_| {}));
            let answer = asks.answer(&text("5"), method, Some(&text(related)), NOBODY, kept);
            (answer.is_some(), asks.questions().of("t1").len())
        };
        assert_eq!(asked(&server, "elicitation/create"), (false, 1));
        assert_eq!(asked(&server, "sampling/createMessage"), (true, 0), "nobody lends a model to a task");
        server.native_tasks = NativeTasks::Off;
        assert_eq!(asked(&server, "elicitation/create"), (true, 0), "declined");
    }

    #[test]
    fn changes_of_lists_are_events_and_nothing_else_is() {
        // Contract 5.3, remote tools/list, as architecture.md §10 amends it.
        let told = Arc::new(Mutex::new(Vec::new()));
        let events = Arc::clone(&told);
        let asks = ServerAsks::new(&stdio_server(&["x"]), Arc::new(move |event| events.lock().unwrap().push(event)));
        let pending = asks.pending();
        let lists = ["tools/list_changed", "resources/list_changed", "prompts/list_changed"];
        for method in lists.into_iter().chain(["resources/updated", "cancelled", "progress", "message"]) {
            asks.notice(&format!("notifications/{method}"), None, Listeners::Shared(&pending));
        }
        let changed = [SessionEvent::ToolsChanged, SessionEvent::ResourcesChanged, SessionEvent::PromptsChanged];
        assert_eq!(*told.lock().unwrap(), changed);
    }
}
