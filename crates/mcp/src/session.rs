//! One session with one server, the same over every transport.
//!
//! Owns the meaning of MCP above the channel: how a tool is called and listed, what goes into `_meta`, which methods
//! are mirrored by name, how large an answer may be, and that the result of a task that asks something is asked for in
//! the background. Arguments and results pass as raw text (invariant W1); a request is sent once (S2).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use caribou_core::era::Era;
use caribou_core::raw::{Members, text};
use caribou_ports::BoxFuture;
use caribou_ports::mcp::{
    CallError, Disconnect, ProgressSink, RawRequest, Session, SessionFacts, TaskQuestion, ToolCall, ToolListing,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::channel::{Channel, Opened, Opening, RequestExtras};
use crate::era::stateless;
use crate::listing;
use crate::relayed::Relayed;
use crate::tasks::questions::Questions;
use crate::wire::limits::FIRST_QUESTION;
use crate::wire::meta::{self, Member, Meta};
use crate::wire::progress::ProgressRoute;

/// Asks a legacy server for the result of a task; it brings its questions with the answer.
const TASKS_RESULT: &str = "tasks/result";

/// A session over a channel.
pub(crate) struct ChannelSession {
    channel: Arc<dyn Channel>,
    facts: SessionFacts,
    /// The modern era's `_meta` fields; empty in the legacy era.
    protocol_meta: ProtocolMeta,
    /// The same for requests about tasks.
    tasks_meta: ProtocolMeta,
    max_result_bytes: usize,
    last_token: AtomicU64,
    questions: Arc<Questions>,
    /// Set when the session is closed or dropped: nothing goes on in the background.
    over: CancellationToken,
    _over_when_dropped: DropGuard,
}

type ProtocolMeta = Vec<(&'static str, Box<RawValue>)>;

impl ChannelSession {
    /// The session over what was opened; a larger result than `max_result_bytes` is refused.
    pub(crate) fn new(opened: Opened, opening: &Opening, max_result_bytes: usize) -> Self {
        let Opened { channel, facts } = opened;
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
            protocol_meta,
            tasks_meta,
            max_result_bytes,
            last_token: AtomicU64::new(0),
            questions: Arc::clone(opening.asks.questions()),
            _over_when_dropped: over.clone().drop_guard(),
            over,
        }
    }

    async fn call(&self, call: ToolCall) -> Result<Box<RawValue>, CallError> {
        let ToolCall { name, arguments, meta: mut extra, headers, progress, task } = call;
        let relayed = Relayed::out_of(&mut extra, self.facts.era);
        let progress = self.route(progress);
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
        let extras = RequestExtras { progress, name: Some(name), headers, ..RequestExtras::default() };
        self.send("tools/call", params, extras).await
    }

    async fn ask(&self, request: RawRequest) -> Result<Box<RawValue>, CallError> {
        let RawRequest { method, params, headers, progress } = request;
        let Some(members) = Members::of(&params) else {
            return Err(CallError::NotSent(format!("the parameters of `{method}` are no object")));
        };
        let progress = self.route(progress);
        let theirs = members.get("_meta").and_then(Members::of).map_or_else(Vec::new, |meta| meta.0);
        let theirs = theirs.into_iter().map(|(key, value)| (key.into_owned(), value.to_owned()));
        let mut extra: Vec<_> = theirs.collect();
        let relayed = Relayed::out_of(&mut extra, self.facts.era);
        let protocol = if method.starts_with("tasks/") { &self.tasks_meta } else { &self.protocol_meta };
        let protocol = relayed.declared(protocol);
        let meta = Meta { protocol: &protocol, extra: &extra, progress: progress.as_ref().map(|route| route.token) };
        let name = mirrored_in_name(&method).and_then(|member| text(members.get(member)?)).map(Arc::from);
        let others = members.0.iter().filter(|(key, _)| key != "_meta");
        let mut others: Vec<_> = others.map(|(key, value)| (key.as_ref(), Member::Raw(value))).collect();
        others.extend(relayed.members());
        let composed = meta::params(&others, meta)?;
        let extras = RequestExtras { progress, name, headers, ..RequestExtras::default() };
        self.send(&method, composed, extras).await
    }

    async fn send(
        &self,
        method: &str,
        params: Box<RawValue>,
        extras: RequestExtras,
    ) -> Result<Box<RawValue>, CallError> {
        let result = self.channel.request(method, Some(params), extras).await?;
        if result.get().len() > self.max_result_bytes {
            return Err(CallError::TooLarge { limit: self.max_result_bytes });
        }
        if self.facts.era == Era::Modern {
            check_result_type(method, &result)?;
        }
        Ok(result)
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

    fn listing_meta(&self) -> Meta<'_> {
        Meta { protocol: &self.protocol_meta, ..Meta::default() }
    }
}

/// The parameter that names what a request is about, for the header `Mcp-Name` of the modern era (mcp.md §3.1).
fn mirrored_in_name(method: &str) -> Option<&'static str> {
    match method {
        "prompts/get" | "tools/call" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// A result of a kind that we do not know is an invalid answer (mcp.md §2.5), and so is a task in answer to anything
/// but a call (§9.2); an absent kind means complete.
fn check_result_type(method: &str, result: &RawValue) -> Result<(), CallError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kind {
        #[serde(default)]
        result_type: Option<String>,
    }
    let kind = serde_json::from_str::<Kind>(result.get()).ok().and_then(|kind| kind.result_type);
    match kind.as_deref() {
        None | Some("complete" | "input_required") => Ok(()),
        Some("task") if method == "tools/call" => Ok(()),
        Some(other) => Err(CallError::Malformed(format!("the server answered with a result of type {other:.40?}"))),
    }
}

impl Session for ChannelSession {
    fn facts(&self) -> &SessionFacts {
        &self.facts
    }

    fn call_tool(&self, call: ToolCall) -> BoxFuture<'_, Result<Box<RawValue>, CallError>> {
        Box::pin(self.call(call))
    }

    fn request(&self, request: RawRequest) -> BoxFuture<'_, Result<Box<RawValue>, CallError>> {
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
        Box::pin(listing::list_tools(self.channel.as_ref(), self.listing_meta()))
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.questions.close();
        self.over.cancel();
        self.channel.close()
    }

    fn ended(&self) -> BoxFuture<'static, Disconnect> {
        self.channel.ended()
    }

    fn stderr_tail(&self) -> String {
        self.channel.stderr_tail()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Says, Scripted, opening, stdio_server};

    fn session(era: Era, script: impl IntoIterator<Item = Says>) -> (Arc<Scripted>, ChannelSession) {
        let channel = Scripted::new(script);
        let facts = SessionFacts {
            era,
            version: "v".to_owned(),
            stateful: true,
            pid: None,
            server_info: None,
            capabilities: None,
        };
        let opened = Opened { channel: channel.clone(), facts };
        (channel, ChannelSession::new(opened, &opening(stdio_server(&["x"])), 100))
    }

    fn call(arguments: Option<&str>) -> ToolCall {
        let arguments = arguments.map(|json| RawValue::from_string(json.to_owned()).expect("valid JSON"));
        ToolCall { name: "t".into(), arguments, meta: Vec::new(), headers: Vec::new(), progress: None, task: None }
    }

    #[tokio::test]
    async fn arguments_and_results_pass_byte_for_byte() {
        let result = r#"{"z":1.0,"content":[{"type":"hologram"}],"n":9223372036854775809}"#;
        for (arguments, sent) in [
            (Some(r#"{"b":9223372036854775809,"a":1.0}"#), r#","arguments":{"b":9223372036854775809,"a":1.0}"#),
            (Some("{}"), r#","arguments":{}"#),
            (Some("null"), r#","arguments":null"#),
            (None, ""),
        ] {
            let (channel, session) = session(Era::Legacy, [Says::Result(result)]);
            assert_eq!(session.call_tool(call(arguments)).await.expect("answered").get(), result);
            assert_eq!(channel.seen.lock().unwrap()[0].1, format!(r#"{{"name":"t"{sent}}}"#));
        }
    }

    #[tokio::test]
    async fn every_call_that_is_listened_to_has_a_token_of_its_own() {
        let (channel, session) = session(Era::Legacy, [Says::Result("{}"), Says::Result("{}")]);
        for _ in 0..2 {
            let call = ToolCall { progress: Some(Arc::new(|_| {})), ..call(None) };
            session.call_tool(call).await.expect("answered");
        }
        let sent: Vec<String> = channel.seen.lock().unwrap().iter().map(|(_, params)| params.clone()).collect();
        let expected = [1, 2].map(|token| format!(r#"{{"name":"t","_meta":{{"progressToken":{token}}}}}"#));
        assert_eq!(sent, expected);
    }

    #[tokio::test]
    async fn a_modern_request_carries_its_own_metadata() {
        let (channel, session) = session(Era::Modern, [Says::Result("{}"), Says::Result(r#"{"tools":[]}"#)]);
        session.call_tool(call(None)).await.expect("answered");
        session.list_tools().await.expect("listed");
        for (_, params) in channel.seen.lock().unwrap().iter() {
            let fields = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#;
            assert!(params.contains(fields) && params.contains("clientCapabilities\":{}"), "{params}");
        }
    }

    #[tokio::test]
    async fn a_modern_result_of_an_unknown_type_is_an_error() {
        let (_, session) =
            session(Era::Modern, [Says::Result(r#"{"resultType":"complete"}"#), Says::Result(r#"{"resultType":"x"}"#)]);
        assert!(session.call_tool(call(None)).await.is_ok());
        assert!(matches!(session.call_tool(call(None)).await, Err(CallError::Malformed(_))));
    }

    #[tokio::test]
    async fn a_result_over_the_bound_is_refused_whole() {
        let long = &*format!(r#"{{"text":"{}"}}"#, "x".repeat(100)).leak();
        let (_, session) = session(Era::Legacy, [Says::Result(long)]);
        assert!(matches!(session.call_tool(call(None)).await, Err(CallError::TooLarge { limit: 100 })));
    }

    #[tokio::test]
    async fn a_call_that_may_become_a_task_says_so_in_the_words_of_its_era() {
        // mcp.md §9.1 and §9.2, who decides and negotiation.
        for (era, sent) in [
            (Era::Legacy, r#"{"name":"t","arguments":{},"task":{"ttl":60000}}"#),
            (
                Era::Modern,
                r#""io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
            ),
        ] {
            let (channel, session) = session(era, [Says::Result("{}"), Says::Result("{}")]);
            let task = RawValue::from_string(r#"{"ttl":60000}"#.to_owned()).ok();
            session.call_tool(ToolCall { task, ..call(Some("{}")) }).await.expect("answered");
            session.call_tool(call(Some("{}"))).await.expect("answered");
            let seen = channel.seen.lock().unwrap();
            assert!(seen[0].1.contains(sent) && (era == Era::Legacy || !seen[0].1.contains("ttl")), "{}", seen[0].1);
            assert!(!seen[1].1.contains("task"), "{}", seen[1].1);
        }
    }

    fn about(method: &'static str, params: &str) -> RawRequest {
        let params = RawValue::from_string(params.to_owned()).expect("valid JSON");
        RawRequest { method: method.into(), params, headers: Vec::new(), progress: None }
    }

    #[tokio::test]
    async fn a_request_of_any_method_passes_byte_for_byte() {
        let answer = r#"{"z":1.0,"taskId":"a"}"#;
        let (channel, legacy) = session(Era::Legacy, [Says::Result(answer)]);
        let asked = about("tasks/get", r#"{"taskId":"a","x":9223372036854775809,"_meta":{"k":1.0}}"#);
        assert_eq!(legacy.request(asked).await.expect("answered").get(), answer);
        assert_eq!(channel.seen.lock().unwrap()[0].1, r#"{"taskId":"a","x":9223372036854775809,"_meta":{"k":1.0}}"#);

        let (channel, modern) = session(Era::Modern, [Says::Result("{}"), Says::Result("{}")]);
        modern.request(about("tasks/get", r#"{"taskId":"a"}"#)).await.expect("answered");
        modern.request(about("resources/read", r#"{"uri":"u"}"#)).await.expect("answered");
        let seen = channel.seen.lock().unwrap();
        let declared = r#""extensions":{"io.modelcontextprotocol/tasks":{}}"#;
        assert!(seen[0].1.contains(declared) && !seen[1].1.contains(declared), "{seen:?}");
    }

    #[test]
    fn methods_are_mirrored_by_what_they_are_about() {
        // mcp.md §3.1, Mcp-Name.
        let mirrored = ["tasks/get", "tasks/update", "tasks/cancel", "prompts/get", "resources/read", "tools/list"];
        let expected = [Some("taskId"), Some("taskId"), Some("taskId"), Some("name"), Some("uri"), None];
        assert_eq!(mirrored.map(mirrored_in_name), expected);
    }

    #[tokio::test]
    async fn a_task_in_answer_to_anything_but_a_call_is_an_error() {
        // mcp.md §9.2, client.
        let task = Says::Result(r#"{"resultType":"task","taskId":"a"}"#);
        let (_, modern) = session(Era::Modern, [task, Says::Result(r#"{"resultType":"task","taskId":"a"}"#)]);
        assert!(modern.call_tool(call(None)).await.is_ok());
        let refused = modern.request(about("tasks/get", r#"{"taskId":"a"}"#)).await;
        assert!(matches!(refused, Err(CallError::Malformed(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn the_result_of_a_task_that_asks_is_asked_for_once_and_no_longer_than_its_session_lives() {
        // mcp.md §9.1, input.
        let (channel, legacy) = session(Era::Legacy, [Says::Nothing]);
        for _ in 0..3 {
            assert!(legacy.task_questions("a").await.expect("asked").is_empty());
        }
        assert_eq!(*channel.seen.lock().unwrap(), [("tasks/result".to_owned(), r#"{"taskId":"a"}"#.to_owned())]);
        let answer = RawValue::from_string("{}".to_owned()).expect("valid JSON");
        assert!(!legacy.answer_task("a", "q-1", answer).await.expect("looked"), "nothing was asked");
        legacy.close().await;
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        assert!(legacy.questions.await_result("a").is_some(), "nobody waits for it any more");
    }
}
