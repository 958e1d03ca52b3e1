//! Streams that stay open: what changes is told on them (mcp.md §3.3, §5).
//!
//! A legacy session has one, opened by GET; a newer one takes the place of an older, since a message goes on exactly
//! one stream. What it watches is on record with the session. A modern client opens one by `subscriptions/listen`;
//! every message on it names that request, and nothing is told that was not asked for. Of tasks a legacy session hears
//! those of its thread, and a modern client those that it named. Streams end when the session does, or the replica.

use std::convert::Infallible;
use std::sync::{Arc, PoisonError};

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::Response;
use caribou_core::era::Era;
use caribou_core::ids::Scope;
use caribou_core::raw::{Members, elements, text};
use caribou_ports::store::ClientSession;
use caribou_runtime::{Changed, ClientTask, ListChanges, RequestSecrets, TaskReach, ToldTasks};
use futures::stream;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::answer::{COMMENT, event, event_stream};
use crate::dress::dressed;
use crate::fault::Fault;
use crate::http_sse::{self, Unread};
use crate::legacy::has_tasks;
use crate::message::{notification, response};
use crate::methods::offers;
use crate::router::{Asked, Endpoint, takes_events};
use crate::tasks::found::reach;
use crate::tasks::made::every;
use crate::tasks::shown;
use crate::watching::{Watching, Who};
use crate::work::Client;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Which changes of lists a client hears of.
#[derive(Clone, Copy)]
struct Wanted {
    tools: bool,
    prompts: bool,
    resources: bool,
}

struct Stream {
    endpoint: Arc<Endpoint>,
    /// Told first.
    first: Option<String>,
    changes: ListChanges,
    wanted: Wanted,
    /// What is still to be told of.
    behind: Vec<String>,
    watching: Watching,
    tasks: ToldTasks,
    /// The `_meta` of every message: JSON text; `None` = it has none.
    meta: Option<String>,
    /// Told last, if the replica ends the stream.
    last: Option<String>,
    /// The legacy session it belongs to.
    session: Option<String>,
    /// Whether its revision has tasks and visits: then it hears of those of its thread.
    is_latest: bool,
    /// Whatever else its client is told, if the session is this stream (mcp.md §3.4).
    unread: Option<Unread>,
    /// Whether its client hears of changes: not before it was told anything else.
    is_begun: bool,
    ended: CancellationToken,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

impl Stream {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if let Some(first) = self.first.take() {
            return Some((Ok(first.into()), self));
        }
        if self.is_over {
            return None;
        }
        // One silence, however often something wakes this that the client does not hear of.
        let session = self.unread.as_ref().and(self.session.clone());
        let mut silence = std::pin::pin!(tokio::time::sleep(self.endpoint.options.keep_alive));
        let text = loop {
            if let Some(told) = self.behind.pop() {
                break told;
            }
            tokio::select! {
                () = self.ended.cancelled() => break self.over(),
                () = stopped(&self.endpoint, session.as_deref()) => break self.last_words(),
                message = next_of(&mut self.unread) => break self.heard(message),
                changed = self.changes.next() => self.take(changed).await,
                uri = self.watching.next() => {
                    break self.told("notifications/resources/updated", &format!("\"uri\":{}", Value::from(uri)));
                }
                task = self.tasks.next() => break self.told_task(&task),
                () = silence.as_mut() => {
                    break if self.is_session_gone().await { self.over() } else { COMMENT.to_owned() };
                }
            }
        };
        Some((Ok(text.into()), self))
    }

    /// Notes what is to be told.
    async fn take(&mut self, changed: Changed) {
        if !self.is_begun {
            return;
        }
        let is_any = changed == Changed::AnyList;
        for (kind, is_wanted, method) in [
            (Changed::Tools, self.wanted.tools, "notifications/tools/list_changed"),
            (Changed::Prompts, self.wanted.prompts, "notifications/prompts/list_changed"),
            (Changed::Resources, self.wanted.resources, "notifications/resources/list_changed"),
        ] {
            if is_wanted && (is_any || changed == kind) {
                self.behind.push(self.told(method, ""));
            }
        }
        match changed {
            Changed::Client => drop(self.is_session_gone().await),
            Changed::Visited(visit) if self.is_latest => {
                let named = format!("\"elicitationId\":{}", Value::from(visit));
                self.behind.push(self.told("notifications/elicitation/complete", &named));
            }
            _ => {}
        }
    }

    /// The notice of this method whose parameters are these members: JSON text without its braces.
    fn told(&self, method: &str, members: &str) -> String {
        let meta = self.meta.as_ref().map(|meta| format!("\"_meta\":{meta}"));
        let members: Vec<&str> =
            [Some(members).filter(|members| !members.is_empty()), meta.as_deref()].into_iter().flatten().collect();
        if members.is_empty() {
            return event(&format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}"));
        }
        event(&notification(method, &format!("{{{}}}", members.join(","))))
    }

    /// How a task stands: to a modern client with all that `tasks/get` would tell (mcp.md §9.2, notifications).
    fn told_task(&self, task: &ClientTask) -> String {
        let every = every(&self.endpoint.runtime);
        let (method, task) = match &self.session {
            Some(_) => ("notifications/tasks/status", shown::legacy(task, every)),
            None => ("notifications/tasks", shown::detailed(task, every)),
        };
        self.told(method, task.strip_prefix('{').and_then(|task| task.strip_suffix('}')).unwrap_or_default())
    }

    /// What was put into the outbox; `None` = something found no room there.
    fn heard(&mut self, message: Option<String>) -> String {
        self.is_begun = true;
        message.map_or_else(|| self.over(), |message| event(&message))
    }

    /// What is still unread, then the end.
    fn last_words(&mut self) -> String {
        match self.unread.as_mut().and_then(Unread::take) {
            Some(message) => event(&message),
            None => self.over(),
        }
    }

    fn over(&mut self) -> String {
        self.is_over = true;
        self.last.take().unwrap_or_default()
    }

    /// Looks the session up: with an open stream it is used, and what it is subscribed to may be something else by now,
    /// as may be its tasks. One that another replica ended is gone; a store that cannot be asked says nothing.
    async fn is_session_gone(&mut self) -> bool {
        let Some(session) = &self.session else { return false };
        match self.endpoint.find_session(session).await {
            Ok(Some(session)) => {
                self.watching.set(&session.subscriptions).await;
                if self.is_latest {
                    self.tasks.follow_newest(false).await;
                }
                false
            }
            Ok(None) => true,
            Err(_) => false,
        }
    }
}

/// Resolves when the replica stops and runs nothing more for this session, whose client is told on this very stream.
async fn stopped(endpoint: &Endpoint, session: Option<&str>) {
    endpoint.options.stopping.cancelled().await;
    if let Some(session) = session {
        endpoint.in_flight.none_left(session).await;
    }
}

/// The next message; never, where there are none.
async fn next_of(unread: &mut Option<Unread>) -> Option<String> {
    match unread {
        Some(unread) => unread.next().await,
        None => std::future::pending().await,
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let Some(session) = &self.session else { return };
        let mut streams = self.endpoint.streams.lock().unwrap_or_else(PoisonError::into_inner);
        // Cancelled: a newer one may have taken its place.
        if !self.ended.is_cancelled() {
            streams.remove(session);
        }
        drop(streams);
        if self.unread.is_some() {
            http_sse::forget(&self.endpoint, session.clone());
        }
    }
}

/// Opens the stream of a legacy session. `told_first` = the session is this stream, which begins with that event.
pub(crate) async fn open(
    endpoint: &Arc<Endpoint>,
    asked: &Asked,
    scope: Scope,
    session: ClientSession,
    told_first: Option<String>,
) -> Result<Response, Fault> {
    let place = place(endpoint)?;
    // Heard from before the session is looked at, so that nothing falls between.
    let changes = endpoint.runtime.list_changes(&scope, asked.place.server(), Some(&session.id));
    let (user, thread) = (scope.user.clone(), Some(scope.thread.clone()));
    let reach = TaskReach { user, thread, server: asked.place.server().cloned() };
    let mut tasks = endpoint.runtime.told_tasks(&asked.caller, reach, Era::Legacy);
    let is_latest = has_tasks(&session.version);
    if is_latest {
        tasks.follow_newest(true).await;
    }
    let who = Who { asked: asked.clone(), scope, secrets: RequestSecrets::default() };
    let mut watching = Watching::behind(endpoint, who);
    watching.set(&session.subscriptions).await;
    let ended = CancellationToken::new();
    let before = {
        let mut streams = endpoint.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.insert(session.id.clone(), ended.clone())
    };
    if let Some(before) = before {
        before.cancel();
    }
    let unread = told_first.as_ref().map(|_| endpoint.outboxes.open(&session.id));
    let stream = Stream {
        endpoint: endpoint.clone(),
        // The client sees that the stream is open.
        first: told_first.or(Some(COMMENT.to_owned())),
        changes,
        wanted: Wanted { tools: true, prompts: true, resources: true },
        behind: Vec::new(),
        watching,
        tasks,
        meta: None,
        last: None,
        session: Some(session.id),
        is_latest,
        is_begun: unread.is_none(),
        unread,
        ended,
        is_over: false,
        _place: place,
    };
    Ok(event_stream(stream::unfold(stream, Stream::next)))
}

/// Opens the stream of a modern `subscriptions/listen` with this id and these parameters.
pub(crate) async fn subscribe(
    endpoint: &Arc<Endpoint>,
    client: Client,
    secrets: RequestSecrets,
    headers: &HeaderMap,
    (id, params): (&RawValue, Option<&RawValue>),
) -> Result<Response, Fault> {
    if !takes_events(headers) {
        return Err(Fault::invalid_request(
            "a subscription is answered by an event stream: accept `text/event-stream`",
        ));
    }
    let params = params.and_then(Members::of);
    let filter = params.as_ref().and_then(|params| params.get("notifications")).and_then(Members::of);
    let Some(filter) = filter else {
        return Err(Fault::invalid_params("`params.notifications` must be an object"));
    };
    let named = filter.get("taskIds").map(texts).unwrap_or_default();
    if filter.get("taskIds").is_some() && !client.takes_tasks {
        return Err(Fault::tasks_undeclared());
    }
    let place = place(endpoint)?;
    let mut tasks = endpoint.runtime.told_tasks(&client.asked.caller, reach(&client), Era::Modern);
    let followed = tasks.follow(&named).await?;
    let who = Who { asked: client.asked, scope: client.scope, secrets };
    let changes = endpoint.runtime.list_changes(&who.scope, who.asked.place.server(), None);
    let offers = offers(endpoint, &who.scope, &who.asked.place).await?;
    let wants = |name: &str| filter.get(name).is_some_and(|wants| wants.get() == "true");
    let wanted = Wanted {
        tools: wants("toolsListChanged"),
        prompts: wants("promptsListChanged") && offers.prompts.list_changed,
        resources: wants("resourcesListChanged") && offers.resources.list_changed,
    };
    let uris = filter.get("resourceSubscriptions").filter(|_| offers.subscribe).map(texts).unwrap_or_default();
    let mut watching = Watching::new(endpoint, who);
    watching.set(&uris).await;
    let granted = granted(wanted, watching.granted().await, followed);
    let meta = format!("{{\"{SUBSCRIPTION}\":{}}}", id.get());
    let acknowledged = format!("{{\"notifications\":{granted},\"_meta\":{meta}}}");
    let result = dressed(Era::Modern, "subscriptions/listen", &format!("{{\"_meta\":{meta}}}"));
    let stream = Stream {
        endpoint: endpoint.clone(),
        first: Some(event(&notification("notifications/subscriptions/acknowledged", &acknowledged))),
        changes,
        wanted,
        behind: Vec::new(),
        watching,
        tasks,
        meta: Some(meta),
        last: Some(event(&response(id, &result))),
        session: None,
        is_latest: false,
        unread: None,
        is_begun: true,
        ended: CancellationToken::new(),
        is_over: false,
        _place: place,
    };
    Ok(event_stream(stream::unfold(stream, Stream::next)))
}

/// The filter that is granted: what is not offered is left out.
fn granted(wanted: Wanted, uris: Vec<String>, tasks: Vec<String>) -> Value {
    let kinds = [
        ("toolsListChanged", wanted.tools),
        ("promptsListChanged", wanted.prompts),
        ("resourcesListChanged", wanted.resources),
    ];
    let kinds = kinds.into_iter().filter(|(_, is_granted)| *is_granted);
    let mut granted: Map<String, Value> = kinds.map(|(name, _)| (name.to_owned(), true.into())).collect();
    for (name, those) in [("resourceSubscriptions", uris), ("taskIds", tasks)] {
        if !those.is_empty() {
            granted.insert(name.to_owned(), json!(those));
        }
    }
    Value::Object(granted)
}

/// The texts of an array; what is none is left out.
fn texts(array: &RawValue) -> Vec<String> {
    let all = elements(array).unwrap_or_default();
    all.into_iter().filter_map(|each| text(each).map(|text| text.into_owned())).collect()
}

fn place(endpoint: &Endpoint) -> Result<OwnedSemaphorePermit, Fault> {
    let place = endpoint.stream_places.clone().try_acquire_owned();
    place.map_err(|_| Fault::no_room("as many event streams are open as may be"))
}
