//! One session with one server, the same over every transport.
//!
//! Owns the meaning of MCP above the channel: how a tool is called and listed, what goes into `_meta`, which methods
//! are mirrored by name, how large an answer may be, and that the result of a task that asks something is asked for in
//! the background. Arguments and results pass as raw text (invariant W1); a request is sent once (S2).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use caribou_core::config::Secret;
use caribou_core::era::Era;
use caribou_core::raw::{Members, text};
use caribou_ports::BoxFuture;
use caribou_ports::mcp::{
    CallError, Disconnect, LISTEN, ProgressSink, RawRequest, Session, SessionFacts, TaskQuestion, ToolCall, ToolListing,
};
use serde_json::value::RawValue;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::asked_span::{AskedServer, AskedSpan};
use crate::channel::{Channel, Opened, Opening, RequestExtras};
use crate::era::stateless;
use crate::listing;
use crate::parked::{Asker, Asking, Hearing, Next, ParkedCall, Parks, asked_instead, first_of, missing};
use crate::relayed::Relayed;
use crate::tasks::questions::Questions;
use crate::visits::Visits;
use crate::watched::Watched;
use crate::wire::headers::mirrored_in_name;
use crate::wire::limits::FIRST_QUESTION;
use crate::wire::meta::{self, Member, Meta};
use crate::wire::progress::ProgressRoute;
use crate::wire::result_type::check_result_type;

/// Asks a legacy server for the result of a task; it brings its questions with the answer.
const TASKS_RESULT: &str = "tasks/result";

/// A session over a channel.
pub(crate) struct ChannelSession {
    channel: Arc<dyn Channel>,
    facts: SessionFacts,
    is_resumed: bool,
    server: AskedServer,
    /// The modern era's `_meta` fields; empty in the legacy era.
    protocol_meta: ProtocolMeta,
    /// The same for requests about tasks.
    tasks_meta: ProtocolMeta,
    max_result_bytes: usize,
    last_token: AtomicU64,
    questions: Arc<Questions>,
    /// The calls that wait for their callers.
    parks: Arc<Parks>,
    watched: Watched,
    visits: Visits,
    /// Set when the session is closed or dropped: nothing goes on in the background.
    over: CancellationToken,
    _over_when_dropped: DropGuard,
}

type ProtocolMeta = Vec<(&'static str, Box<RawValue>)>;

impl ChannelSession {
    /// The session over what was opened; a larger result than `max_result_bytes` is refused.
    pub(crate) fn new(opened: Opened, opening: &Opening, max_result_bytes: usize) -> Self {
        let Opened { channel, facts, is_resumed } = opened;
        let (protocol_meta, tasks_meta) = match facts.era {
            Era::Legacy => (Vec::new(), Vec::new()),
            Era::Modern => {
                let capabilities = facts.capabilities.as_deref();
                (stateless::protocol_meta(&opening.server), stateless::tasks_meta(&opening.server, capabilities))
            }
        };
        let over = CancellationToken::new();
        Self {
            channel,
            facts,
            is_resumed,
            server: AskedServer::of(&opening.server),
            protocol_meta,
            tasks_meta,
            max_result_bytes,
            last_token: AtomicU64::new(0),
            questions: Arc::clone(opening.asks.questions()),
            parks: Parks::new(over.clone()),
            watched: opening.asks.watched().clone(),
            visits: opening.asks.visits().clone(),
            _over_when_dropped: over.clone().drop_guard(),
            over,
        }
    }

    async fn call(&self, call: ToolCall) -> Result<Box<RawValue>, CallError> {
        let ToolCall { name, arguments, meta: mut extra, mut headers, progress, task } = call;
        let span = AskedSpan::begin(&self.server, &self.facts.version, "tools/call", Some(&name));
        span.tell(&mut extra, &mut headers);
        let mut relayed = Relayed::out_of(&mut extra, self.facts.era);
        if let Some(brought) = relayed.brought() {
            let answer = span.within(self.parks.resume(brought, progress)).await;
            span.answered(&answer);
            return answer;
        }
        // A call that may become a task is followed by nobody who could be asked in the middle of it.
        let asker = if task.is_none() { relayed.asker() } else { Asker::Deaf };
        let hearing = Hearing::of(&asker, progress);
        let progress = self.route(hearing.sink());
        let protocol = if task.is_some() { &self.tasks_meta } else { &self.protocol_meta };
        let protocol = relayed.declared(protocol);
        let meta = Meta { protocol: &protocol, extra: &extra, progress: progress.as_ref().map(|route| route.token) };
        let mut members = vec![("name", Member::Text(&name))];
        members.extend(arguments.as_deref().map(|arguments| ("arguments", Member::Raw(arguments))));
        // The modern era knows no such member: there the server decides.
        let wish = task.as_deref().filter(|_| self.facts.era == Era::Legacy);
        members.extend(wish.map(|wish| ("task", Member::Raw(wish))));
        members.extend(relayed.members());
        let params = meta::params(&members, meta)?;
        drop(arguments);
        let extras = RequestExtras { progress, name: Some(name), headers, asker, ..RequestExtras::default() };
        let answer = span.within(self.send("tools/call", params, extras, hearing)).await;
        span.answered(&answer);
        answer
    }

    async fn ask(&self, request: RawRequest) -> Result<Box<RawValue>, CallError> {
        let RawRequest { method, params, mut headers, progress } = request;
        let Some(members) = Members::of(&params) else {
            return Err(CallError::NotSent(format!("the parameters of `{method}` are no object")));
        };
        let theirs = members.get("_meta").and_then(Members::of).map_or_else(Vec::new, |meta| meta.0);
        let theirs = theirs.into_iter().map(|(key, value)| (key.into_owned(), value.to_owned()));
        let mut extra: Vec<_> = theirs.collect();
        let span = AskedSpan::begin(&self.server, &self.facts.version, &method, None);
        span.tell(&mut extra, &mut headers);
        let mut relayed = Relayed::out_of(&mut extra, self.facts.era);
        if let Some(brought) = relayed.brought() {
            let answer = span.within(self.parks.resume(brought, progress)).await;
            span.answered(&answer);
            return answer;
        }
        let asker = if may_be_asked(&method) { relayed.asker() } else { Asker::None };
        let hearing = Hearing::of(&asker, progress);
        let listener = |sink| Some(ProgressRoute::listener(sink));
        let progress = if method == LISTEN { hearing.sink().and_then(listener) } else { self.route(hearing.sink()) };
        let protocol = if method.starts_with("tasks/") { &self.tasks_meta } else { &self.protocol_meta };
        let protocol = relayed.declared(protocol);
        let token = progress.as_ref().and_then(ProgressRoute::sent);
        let meta = Meta { protocol: &protocol, extra: &extra, progress: token };
        let name = mirrored_in_name(&method).and_then(|member| text(members.get(member)?)).map(Arc::from);
        let others = members.0.iter().filter(|(key, _)| key != "_meta");
        let mut others: Vec<_> = others.map(|(key, value)| (key.as_ref(), Member::Raw(value))).collect();
        others.extend(relayed.members());
        let composed = meta::params(&others, meta)?;
        let extras = RequestExtras { progress, name, headers, asker, ..RequestExtras::default() };
        let answer = span.within(self.send(&method, composed, extras, hearing)).await;
        span.answered(&answer);
        answer
    }

    async fn send(
        &self,
        method: &str,
        params: Box<RawValue>,
        extras: RequestExtras,
        hearing: Hearing,
    ) -> Result<Box<RawValue>, CallError> {
        let answer = match extras.asker.clone() {
            Asker::Open(asking) => self.send_asked(method, params, extras, (asking, hearing)).await,
            Asker::None | Asker::Deaf => self.channel.request(method, Some(params), extras).await,
        };
        let result = answer.inspect_err(|error| self.visits.required(error))?;
        if result.get().len() > self.max_result_bytes {
            return Err(CallError::TooLarge { limit: self.max_result_bytes });
        }
        if self.facts.era == Era::Modern {
            check_result_type(method, &result)?;
        }
        Ok(result)
    }

    /// Sends a request in the middle of which its caller can be asked something: then it is parked, and the answer is what
    /// is asked (mcp.md 14.7).
    async fn send_asked(
        &self,
        method: &str,
        params: Box<RawValue>,
        extras: RequestExtras,
        (asking, hearing): (Arc<Asking>, Hearing),
    ) -> Result<Box<RawValue>, CallError> {
        let (channel, method) = (Arc::clone(&self.channel), method.to_owned());
        let mut flight = Box::pin(async move { channel.request(&method, Some(params), extras).await });
        match first_of(&mut flight, &asking).await {
            Next::Done(outcome) => asked_instead(outcome, &asking),
            Next::Lacking(required) => Err(missing(required)),
            Next::Asked => {
                let call = ParkedCall::go_on(flight, asking, hearing, self.over.clone());
                self.parks.begin(&call).await
            }
        }
    }

    async fn asked_about(&self, task: &str) -> Result<Vec<TaskQuestion>, CallError> {
        // A modern server sends no requests: its questions stand in the answer to `tasks/get`.
        if self.facts.era == Era::Modern {
            return Ok(Vec::new());
        }
        self.await_result(task)?;
        Ok(self.questions.first(task, FIRST_QUESTION).await)
    }

    /// Has the server be asked for the result of a task, in the background and once, for as long as the task and this
    /// session live. The result itself is fetched by whoever follows the task.
    fn await_result(&self, task: &str) -> Result<(), CallError> {
        let params = meta::params(&[("taskId", Member::Text(task))], Meta::default())?;
        let Some(awaited) = self.questions.await_result(task) else { return Ok(()) };
        let (channel, questions) = (Arc::clone(&self.channel), Arc::clone(&self.questions));
        let (over, task) = (self.over.clone(), task.to_owned());
        tokio::spawn(async move {
            let asked = channel.request(TASKS_RESULT, Some(params), RequestExtras::default());
            let answered = over.run_until_cancelled(asked).await;
            // A stream that broke off says nothing about the task: what it asked can still be answered.
            if matches!(answered, Some(Ok(_) | Err(CallError::Rpc { .. }))) {
                questions.over(&task);
            }
            drop(awaited);
        });
        Ok(())
    }

    /// Tokens are unique in the session: those of callers never travel.
    fn route(&self, progress: Option<ProgressSink>) -> Option<ProgressRoute> {
        let next_token = || self.last_token.fetch_add(1, Ordering::Relaxed) + 1;
        progress.map(|sink| ProgressRoute { token: next_token(), sink })
    }
}

/// The requests in the middle of which servers may ask something (mcp.md §4).
fn may_be_asked(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

impl Session for ChannelSession {
    fn facts(&self) -> &SessionFacts {
        &self.facts
    }

    fn call_tool(&self, call: ToolCall) -> BoxFuture<'_, Result<Box<RawValue>, CallError>> {
        Box::pin(self.call(call))
    }

    fn request(&self, request: RawRequest) -> BoxFuture<'_, Result<Box<RawValue>, CallError>> {
        if request.method == LISTEN && self.facts.era == Era::Legacy {
            return Box::pin(self.watched.listen(Arc::clone(&self.channel), self.over.clone(), request));
        }
        Box::pin(self.ask(request))
    }

    fn task_questions(&self, task_id: &str) -> BoxFuture<'_, Result<Vec<TaskQuestion>, CallError>> {
        let task = task_id.to_owned();
        Box::pin(async move { self.asked_about(&task).await })
    }

    fn answer_task(
        &self,
        task_id: &str,
        question: &str,
        answer: Box<RawValue>,
    ) -> BoxFuture<'_, Result<bool, CallError>> {
        let (task, question) = (task_id.to_owned(), question.to_owned());
        Box::pin(async move { self.questions.answer(&task, &question, &answer).await })
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<ToolListing, CallError>> {
        Box::pin(async move {
            let span = AskedSpan::begin(&self.server, &self.facts.version, "tools/list", None);
            let mut extra = Vec::new();
            span.tell(&mut extra, &mut Vec::new());
            let meta = Meta { protocol: &self.protocol_meta, extra: &extra, progress: None };
            let listed = span.within(listing::list_tools(self.channel.as_ref(), meta)).await;
            span.ended(&listed);
            listed
        })
    }

    fn is_waited_for(&self) -> bool {
        self.parks.is_any()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.questions.close();
        self.over.cancel();
        self.parks.close();
        self.channel.close()
    }

    fn resumption(&self) -> Option<Secret> {
        self.channel.resumption(&self.facts)
    }

    fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    fn leave(&self) -> BoxFuture<'static, ()> {
        self.questions.close();
        self.over.cancel();
        self.channel.leave()
    }

    fn ended(&self) -> BoxFuture<'static, Disconnect> {
        self.channel.ended()
    }

    fn stderr_tail(&self) -> String {
        self.channel.stderr_tail()
    }
}

#[cfg(test)]
mod tests;
