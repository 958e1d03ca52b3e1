//! One call about a task on its way to the server: headers, interceptors, session, bound.
//!
//! A submit carries what its caller's call was prepared with; a call in the background carries what contract 6.13
//! leaves of it. Both are shown to the interceptors in the same order. The session is that of the task's user and
//! thread, and a bound that passes never ends it: the answer was slow, not the session broken.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_core::bounds::TASK_SESSION;
use caribou_core::config::ServerConfig;
use caribou_core::credentials::CallerHeaders;
use caribou_core::failure::Code;
use caribou_core::ids::{BootId, Epoch, RequestId, Scope};
use caribou_core::task::limits::COMPENSATION;
use caribou_core::task::{LOST, Pin, RpcError, TaskId};
use caribou_core::tool::visible_name;
use caribou_ports::BoxFuture;
use caribou_ports::interceptor::InterceptedCall;
use caribou_ports::mcp::{CallError, ProgressSink, RawRequest, Session, TaskQuestion, ToolCall};
use caribou_ports::task_driver::{RemoteError, Upstream};
use serde_json::value::RawValue;

use super::road::{About, TaskRoad};
use crate::call::{MOVE_PAUSE, MOVES, call_failed, call_headers, header_meta};
use crate::caller::RequestSecrets;
use crate::config::Binding;
use crate::error::{UpstreamError, VerbError};
use crate::interception::{Chain, Flow, Passage};
use crate::personal::User;
use crate::session::{Admitted, Handle, Router};

/// Where a call goes.
pub(super) struct Way<'a> {
    pub(super) about: About<'a>,
    pub(super) binding: Binding,
    pub(super) chain: Arc<Chain>,
    /// Kept while the call lasts: a user's own server is not let go of meanwhile.
    pub(super) own: Option<Arc<User>>,
}

/// What a call carries.
pub(super) enum Carried {
    /// What its caller's call was prepared with; gone after the one call that is made with it.
    Submit(Mutex<Option<Box<Submitting>>>),
    /// The user's credential alone, for the run of an agent that submitted the task.
    Background(Option<Arc<str>>),
}

/// A submit that interceptors have let pass.
pub(crate) struct Submitting {
    pub(crate) headers: CallerHeaders,
    pub(crate) meta: Vec<(String, Box<RawValue>)>,
    pub(crate) passage: Option<Passage>,
    pub(crate) progress: Option<ProgressSink>,
}

/// One call about one task.
pub(super) struct SessionUpstream {
    task: TaskId,
    scope: Scope,
    only: Option<Epoch>,
    binding: Binding,
    chain: Arc<Chain>,
    carried: Carried,
    router: Router,
    boot: BootId,
    /// How long one call may take.
    bound: Duration,
    /// The largest answer. Bytes.
    max_bytes: usize,
    /// The session of the last call.
    seen: Mutex<Option<Arc<Handle>>>,
    /// Whether a call may have reached the server.
    reached: AtomicBool,
    _own: Option<Arc<User>>,
}

impl SessionUpstream {
    pub(super) fn new(road: &TaskRoad, way: Way<'_>, carried: Carried) -> Self {
        let Way { about, binding, chain, own } = way;
        let of_server = binding.server.tool_call_timeout.unwrap_or(Duration::MAX);
        Self {
            task: about.task,
            scope: about.scope.clone(),
            only: about.only,
            bound: of_server.min(road.limits.call_timeout()).min(road.options.call_max),
            max_bytes: usize::try_from(road.limits.max_status_bytes).unwrap_or(usize::MAX),
            binding,
            chain,
            carried,
            router: road.router.clone(),
            boot: road.boot.clone(),
            seen: Mutex::default(),
            reached: AtomicBool::new(false),
            _own: own,
        }
    }

    /// The same after a call that this session has answered.
    pub(super) fn answered_by(self, handle: Arc<Handle>) -> Self {
        Self { seen: Mutex::new(Some(handle)), ..self }
    }

    async fn bounded<T>(&self, what: &str, call: impl Future<Output = Result<T, VerbError>>) -> Result<T, RemoteError> {
        match tokio::time::timeout(self.bound, call).await {
            Ok(done) => done.map_err(remote),
            Err(_) => {
                // Before anything was sent it surely had no effect.
                let code = if self.reached.load(Ordering::Relaxed) { Code::Timeout } else { Code::Unavailable };
                let (server, bound) = (self.binding.server.shown_name(), self.bound.as_secs_f64());
                Err(RemoteError::new(code, format!("`{what}` of server `{server}` did not answer within {bound} s")))
            }
        }
    }

    /// An answer that would be too large the next time too (architecture.md §10, oversized status answer).
    fn sized(&self, what: &str, result: Box<RawValue>) -> Result<Box<RawValue>, RemoteError> {
        if result.get().len() <= self.max_bytes {
            return Ok(result);
        }
        let message = format!("the answer of `{what}` has more than {} bytes", self.max_bytes);
        Err(RemoteError::new(Code::Invalid, message))
    }

    async fn call(
        &self,
        raw_name: Arc<str>,
        arguments: Option<Box<RawValue>>,
        task: Option<Box<RawValue>>,
    ) -> Result<Box<RawValue>, VerbError> {
        let shown = Shown { name: &raw_name, arguments };
        let (submitting, arguments) = match self.carry(shown).await? {
            Carry::Go(submitting, arguments) => (submitting, arguments),
            Carry::Answered(result) => return Ok(result),
        };
        let Submitting { headers, meta, passage, progress } = *submitting;
        let server = &self.binding.server;
        let call = || ToolCall {
            name: raw_name.clone(),
            arguments: passage.as_ref().map_or(arguments.as_deref(), Passage::arguments).map(RawValue::to_owned),
            meta: meta.clone(),
            headers: call_headers(server, &headers),
            progress: progress.clone(),
            task: task.clone(),
        };
        let result = self.send(&headers, &raw_name, |session| {
            let call = call();
            async move { session.call_tool(call).await }
        });
        let result = result.await?;
        match passage {
            // What tells of a task is none of the results that interceptors know.
            Some(passage) if task.is_none() => passage.after(result).await,
            _ => Ok(result),
        }
    }

    /// Sends something of the protocol besides calls of tools; interceptors are not asked about it.
    async fn send_beside<T, F>(&self, what: &str, send: impl Fn(Arc<dyn Session>) -> F) -> Result<T, RemoteError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        let sent = async {
            let server = &self.binding.server;
            let planned = CallerHeaders::plan_in_background(server, &self.scope.user);
            let headers = planned.map_err(|denied| VerbError::new(Code::Denied, denied.to_string()))?;
            self.send(&headers, what, send).await
        };
        self.bounded(what, sent).await
    }

    /// Sends in the session of these headers; once more if what was sent surely never left, because the session was
    /// lost between two calls.
    async fn send<T, F>(
        &self,
        headers: &CallerHeaders,
        what: &str,
        send: impl Fn(Arc<dyn Session>) -> F,
    ) -> Result<T, VerbError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        let (mut is_first, mut moves) = (true, 0);
        loop {
            let admitted = self.admit(headers).await?;
            self.reached.store(true, Ordering::Relaxed);
            let result = send(admitted.session.clone()).await;
            admitted.handle.asked(&result);
            match result {
                // The replica that it is in does not hold it any more: it is looked up again.
                Err(CallError::Disconnected { sent: false, .. })
                    if admitted.handle.home.is_there() && moves < MOVES =>
                {
                    moves += 1;
                    tokio::time::sleep(MOVE_PAUSE * moves).await;
                }
                Err(CallError::Disconnected { sent: false, .. }) if is_first => is_first = false,
                done => return done.map_err(|e| self.failed(what, e, headers)),
            }
        }
    }

    /// What cannot be read of an answer in the background could not be read the next time either: `invalid`, which ends
    /// the task (contract 6.7, not valid JSON).
    fn failed(&self, what: &str, error: CallError, headers: &CallerHeaders) -> VerbError {
        let is_for_good = matches!(error, CallError::Unreadable(_) | CallError::TooLarge { .. });
        let failed = call_failed(&self.binding.server, what, error, headers.values());
        match self.carried {
            Carried::Background(_) if is_for_good => VerbError { code: Code::Invalid, ..failed },
            _ => failed,
        }
    }

    /// A pinned task is asked about in its own session only: another one would know nothing of it, and say so.
    async fn admit(&self, headers: &CallerHeaders) -> Result<Admitted, VerbError> {
        let lost = || VerbError::new(Code::NotFound, LOST);
        let open = || self.router.open(&self.binding.server.name, &self.scope).map(|handle| handle.epoch());
        if self.only.is_some() && open() != self.only {
            return Err(lost());
        }
        let admitted = self.router.admit(&self.binding, &self.scope, headers).await?;
        if self.only.is_some_and(|epoch| admitted.handle.epoch() != epoch) {
            return Err(lost());
        }
        // Noted while the call is in flight, so that the session does not go between it and what comes of it.
        if self.only.is_some() {
            admitted.handle.keep_for(self.task, TASK_SESSION);
        } else if matches!(self.carried, Carried::Submit(_)) && self.is_bound_to(&admitted.handle) {
            // Until it is stored; what is not stored by then is none.
            admitted.handle.keep_for(self.task, self.bound.saturating_add(COMPENSATION * 3));
        }
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(admitted.handle.clone());
        Ok(admitted)
    }

    /// Whether the server keeps something in this session that another one would not have.
    fn is_bound_to(&self, handle: &Handle) -> bool {
        let keeps = handle.session().is_some_and(|session| session.facts().stateful);
        keeps || self.binding.server.transport.owns_process()
    }

    /// What the call carries, and its arguments unless interceptors hold them.
    async fn carry(&self, shown: Shown<'_>) -> Result<Carry, VerbError> {
        let run_id = match &self.carried {
            Carried::Background(run_id) => run_id,
            Carried::Submit(submitting) => {
                let submitting = submitting.lock().unwrap_or_else(PoisonError::into_inner).take();
                // A submit is one call: what it was prepared for is never sent twice (invariant S2).
                let submitting = submitting.ok_or_else(|| VerbError::new(Code::Conflict, "a submit is one call"))?;
                return Ok(Carry::Go(submitting, shown.arguments));
            }
        };
        let server = &self.binding.server;
        let planned = CallerHeaders::plan_in_background(server, &self.scope.user);
        let mut headers = planned.map_err(|denied| VerbError::new(Code::Denied, denied.to_string()))?;
        let (mut passage, mut arguments) = (None, shown.arguments);
        if !self.chain.is_empty() {
            let call = self.intercepted(shown.name, arguments.take(), run_id.clone());
            match self.chain.before(server, call, &mut headers, &RequestSecrets::default()).await? {
                Flow::Go(asked) => passage = Some(*asked),
                Flow::Answered(result) => return Ok(Carry::Answered(result)),
            }
        }
        let meta = header_meta(server, &headers);
        Ok(Carry::Go(Box::new(Submitting { headers, meta, passage, progress: None }), arguments))
    }

    fn intercepted(
        &self,
        raw_name: &Arc<str>,
        arguments: Option<Box<RawValue>>,
        run_id: Option<Arc<str>>,
    ) -> InterceptedCall {
        let server: &ServerConfig = &self.binding.server;
        InterceptedCall {
            server: server.name.clone(),
            raw_name: raw_name.clone(),
            visible_name: visible_name(server.shown_name(), raw_name, server.tool_name_prefix).into(),
            scope: self.scope.clone(),
            run_id,
            tool_call_id: None,
            request_id: RequestId::new(self.task.to_string()),
            arguments,
            headers: Vec::new(),
            secrets: Vec::new(),
        }
    }
}

fn remote(error: VerbError) -> RemoteError {
    let rpc = error.upstream.map(|UpstreamError { code, message, data }| RpcError {
        code,
        message,
        data: data.map(|data| (*data).to_owned()),
    });
    RemoteError { rpc, ..RemoteError::new(error.code, error.detail) }
}

/// A call as a driver asks for it.
struct Shown<'a> {
    name: &'a Arc<str>,
    arguments: Option<Box<RawValue>>,
}

/// What becomes of it.
enum Carry {
    /// It is sent with these, and these arguments unless interceptors hold others.
    Go(Box<Submitting>, Option<Box<RawValue>>),
    /// An interceptor answered it.
    Answered(Box<RawValue>),
}

impl Upstream for SessionUpstream {
    fn call_tool(
        &self,
        raw_name: &str,
        arguments: Option<Box<RawValue>>,
        task: Option<Box<RawValue>>,
    ) -> BoxFuture<'_, Result<Box<RawValue>, RemoteError>> {
        let raw_name: Arc<str> = raw_name.into();
        Box::pin(async move {
            let result = self.bounded(&raw_name, self.call(raw_name.clone(), arguments, task)).await?;
            self.sized(&raw_name, result)
        })
    }

    fn request(
        &self,
        method: &'static str,
        params: Box<RawValue>,
    ) -> BoxFuture<'_, Result<Box<RawValue>, RemoteError>> {
        Box::pin(async move {
            let send = |session: Arc<dyn Session>| {
                let request =
                    RawRequest { method: method.into(), params: params.clone(), headers: Vec::new(), progress: None };
                async move { session.request(request).await }
            };
            self.sized(method, self.send_beside(method, send).await?)
        })
    }

    fn task_questions(&self, remote_id: &str) -> BoxFuture<'_, Result<Vec<TaskQuestion>, RemoteError>> {
        let remote_id: Arc<str> = remote_id.into();
        Box::pin(async move {
            let send = |session: Arc<dyn Session>| {
                let remote_id = remote_id.clone();
                async move { session.task_questions(&remote_id).await }
            };
            self.send_beside("tasks/result", send).await
        })
    }

    fn answer_task(
        &self,
        remote_id: &str,
        question: &str,
        answer: Box<RawValue>,
    ) -> BoxFuture<'_, Result<bool, RemoteError>> {
        let (remote_id, question): (Arc<str>, Arc<str>) = (remote_id.into(), question.into());
        Box::pin(async move {
            let send = |session: Arc<dyn Session>| {
                let (remote_id, question, answer) = (remote_id.clone(), question.clone(), answer.clone());
                async move { session.answer_task(&remote_id, &question, answer).await }
            };
            self.send_beside("the answer to a question", send).await
        })
    }

    fn server(&self) -> &ServerConfig {
        &self.binding.server
    }

    fn session_id(&self) -> Option<String> {
        let handle = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        self.is_bound_to(&handle)
            .then(|| Pin { boot: handle.owner(&self.boot).clone(), epoch: handle.epoch() }.to_string())
    }
}
