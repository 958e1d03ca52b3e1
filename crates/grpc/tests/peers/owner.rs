//! An owner without sessions: its tools are scripts, its calls are remembered by name and made once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use caribou_core::era::Era;
use caribou_core::failure::Code;
use caribou_core::ids::{BootId, Epoch, Scope, ServerName};
use caribou_core::session::{NotTaken, Received, receive};
use caribou_grpc::{Happened, Owner, Running};
use caribou_ports::BoxFuture;
use caribou_ports::mcp::{CallError, Progress, SessionFacts, TaskQuestion, ToolCall, ToolListing};
use caribou_ports::peers::{ClientWord, Exchange, Nudge, PeerAnswer, PeerError, PeerRequest, Wanted};
use caribou_runtime::{ExchangeRefused, OpenedForPeer};
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, watch};

type Answer = Result<PeerAnswer, CallError>;

/// What a test sees and decides.
pub(crate) struct FakeOwner {
    boot: BootId,
    /// The epoch at which it holds its session.
    pub(crate) held: Mutex<Option<Epoch>>,
    /// Lets the tool `wait` answer.
    pub(crate) go_on: Notify,
    /// Calls that were begun.
    pub(crate) begun: watch::Sender<usize>,
    /// How often somebody waited for a call.
    pub(crate) joined: watch::Sender<usize>,
    /// Calls that were given up.
    pub(crate) cancelled: watch::Sender<usize>,
    /// Hints that came.
    pub(crate) nudges: watch::Sender<Vec<Nudge>>,
    pub(crate) words: Mutex<Vec<String>>,
    /// Sessions that were opened, with the values of the headers they were opened with.
    pub(crate) opened: Mutex<Vec<String>>,
    /// Whether calls are refused as busy.
    pub(crate) is_full: Mutex<bool>,
    calls: Mutex<HashMap<String, Arc<Call>>>,
}

struct Call {
    answer: watch::Sender<Option<Answer>>,
    listener: Mutex<Option<mpsc::UnboundedSender<Progress>>>,
    lost: AtomicUsize,
}

pub(crate) fn json(text: impl Into<String>) -> Arc<RawValue> {
    RawValue::from_string(text.into()).unwrap().into()
}

impl FakeOwner {
    pub(crate) fn new(boot: &str) -> Arc<Self> {
        Arc::new(Self {
            boot: BootId::from(boot),
            held: Mutex::new(Some(Epoch(7))),
            go_on: Notify::new(),
            begun: watch::Sender::new(0),
            joined: watch::Sender::new(0),
            cancelled: watch::Sender::new(0),
            nudges: watch::Sender::default(),
            words: Mutex::default(),
            opened: Mutex::default(),
            is_full: Mutex::default(),
            calls: Mutex::default(),
        })
    }

    fn is_taken(&self, to: &BootId, hops: u32, epoch: Option<Epoch>) -> Result<Option<Epoch>, NotTaken> {
        if *to != self.boot {
            return Err(NotTaken::WrongBoot);
        }
        let long = std::time::Duration::from_secs(60);
        let held = *self.held.lock().unwrap();
        receive(Received { hops, epoch, held, trust: long, deadline: long, is_draining: false })
    }

    /// How often a call lost its caller.
    pub(crate) fn losses(&self) -> usize {
        self.calls.lock().unwrap().values().map(|call| call.lost.load(Ordering::Acquire)).sum()
    }
}

/// The owner that is served; a clone of the handle that the test keeps.
pub(crate) struct Served(pub(crate) Arc<FakeOwner>);

impl Owner for Served {
    fn boot(&self) -> &BootId {
        &self.0.boot
    }

    fn open<'a>(
        &'a self,
        to: &'a BootId,
        hops: u32,
        wanted: Wanted,
    ) -> BoxFuture<'a, Result<OpenedForPeer, PeerError>> {
        Box::pin(async move {
            self.0.is_taken(to, hops, wanted.epoch)?;
            if wanted.key.server.as_str() == "broken" {
                let (code, detail) = (Code::Denied, "the server wants another credential".to_owned());
                return Err(PeerError::Failed { code, detail, retry_after: None });
            }
            let headers: Vec<_> = wanted.headers.iter().map(|(_, value)| value.expose()).collect();
            self.0.opened.lock().unwrap().push(format!("{} {}", wanted.key, headers.join(",")));
            let epoch = *self.0.held.lock().unwrap().get_or_insert(Epoch(1));
            let facts = SessionFacts {
                era: Era::Legacy,
                version: "2025-11-25".to_owned(),
                stateful: true,
                pid: Some(4),
                server_info: Some(json(r#"{"name":"fake","n":1.0}"#)),
                capabilities: None,
            };
            Ok(OpenedForPeer { epoch, facts })
        })
    }

    fn begin(&self, to: &BootId, exchange: Exchange) -> Result<Box<dyn Running>, ExchangeRefused> {
        if let Some(call) = self.0.calls.lock().unwrap().get(&exchange.call_id) {
            return Ok(Box::new(join(call, &self.0)));
        }
        if exchange.is_again {
            return Err(ExchangeRefused::UnknownCall);
        }
        self.0.is_taken(to, exchange.hops, Some(exchange.epoch)).map_err(ExchangeRefused::NotTaken)?;
        if *self.0.is_full.lock().unwrap() {
            return Err(ExchangeRefused::Busy("64 calls are in flight".to_owned()));
        }
        let call =
            Arc::new(Call { answer: watch::Sender::new(None), listener: Mutex::default(), lost: AtomicUsize::new(0) });
        self.0.calls.lock().unwrap().insert(exchange.call_id, call.clone());
        let running = join(&call, &self.0);
        self.0.begun.send_modify(|begun| *begun += 1);
        let owner = self.0.clone();
        tokio::spawn(async move {
            let answer = play(&owner, &call, exchange.request).await;
            call.answer.send_replace(Some(answer));
        });
        Ok(Box::new(running))
    }

    fn close_sessions<'a>(
        &'a self,
        to: &'a BootId,
        scope: Scope,
        server: Option<ServerName>,
    ) -> BoxFuture<'a, Result<u64, PeerError>> {
        Box::pin(async move {
            self.0.is_taken(to, 0, None)?;
            self.0.held.lock().unwrap().take();
            self.0.opened.lock().unwrap().push(format!("closed {scope} {}", server.unwrap_or_else(|| "all".into())));
            Ok(2)
        })
    }

    fn hear(&self, to: &BootId, word: ClientWord) -> Result<bool, PeerError> {
        if *to != self.0.boot {
            return Err(NotTaken::WrongBoot.into());
        }
        self.0.words.lock().unwrap().push(format!("{word:?}"));
        Ok(true)
    }

    fn nudged(&self, about: Nudge) {
        self.0.nudges.send_modify(|nudges| nudges.push(about));
    }
}

/// What the tools do.
async fn play(owner: &FakeOwner, call: &Call, request: PeerRequest) -> Answer {
    match request {
        PeerRequest::CallTool(ToolCall { name, arguments, headers, progress, .. }) => {
            let arguments = arguments.map_or_else(|| json(r#""absent""#), Arc::from);
            match &*name {
                "echo" => Ok(PeerAnswer::Result(arguments)),
                "headers" => {
                    let shown: Vec<_> =
                        headers.iter().map(|(name, value)| format!("{name}={}", value.expose())).collect();
                    Ok(PeerAnswer::Result(json(format!("\"{}\"", shown.join(";")))))
                }
                "count" => {
                    for n in 0..100 {
                        call.report(Progress::Progress(json(format!(r#"{{"progress":{n}.0}}"#))));
                    }
                    Ok(PeerAnswer::Result(json(format!("\"{}\"", progress.is_some()))))
                }
                "wait" => {
                    owner.go_on.notified().await;
                    call.report(Progress::Message(json(r#"{"data":"nearly"}"#)));
                    Ok(PeerAnswer::Result(arguments))
                }
                _ => Err(CallError::Rpc { code: -32602, message: "no such tool".to_owned(), data: Some(arguments) }),
            }
        }
        PeerRequest::Request(raw) => Ok(PeerAnswer::Result(json(format!("[\"{}\",{}]", raw.method, raw.params)))),
        PeerRequest::ListTools => {
            let (tools, warnings) = (vec![json(r#"{"name":"t","x":1.0}"#)], vec!["odd".to_owned()]);
            Ok(PeerAnswer::Tools(ToolListing { tools, warnings }))
        }
        PeerRequest::TaskQuestions(task) => {
            let (name, params) = (format!("q-of-{task}"), RawValue::from_string("{}".to_owned()).unwrap());
            Ok(PeerAnswer::Questions(vec![TaskQuestion { name, method: "elicitation/create".to_owned(), params }]))
        }
        PeerRequest::AnswerTask { question, .. } => Ok(PeerAnswer::Answered(question == "q")),
    }
}

impl Call {
    fn report(&self, progress: Progress) {
        if let Some(listener) = &*self.listener.lock().unwrap() {
            let _ = listener.send(progress);
        }
    }
}

struct Joined {
    call: Arc<Call>,
    owner: Arc<FakeOwner>,
    answer: watch::Receiver<Option<Answer>>,
    progress: mpsc::UnboundedReceiver<Progress>,
    is_lost: bool,
}

fn join(call: &Arc<Call>, owner: &Arc<FakeOwner>) -> Joined {
    let (listener, progress) = mpsc::unbounded_channel();
    *call.listener.lock().unwrap() = Some(listener);
    owner.joined.send_modify(|joined| *joined += 1);
    let answer = call.answer.subscribe();
    Joined { call: call.clone(), owner: owner.clone(), answer, progress, is_lost: true }
}

impl Running for Joined {
    fn next(&mut self) -> BoxFuture<'_, Happened> {
        Box::pin(async {
            tokio::select! {
                biased;
                Some(progress) = self.progress.recv() => return Happened::Progress(progress),
                _ = self.answer.wait_for(Option::is_some) => {}
            }
            if let Ok(progress) = self.progress.try_recv() {
                return Happened::Progress(progress);
            }
            self.is_lost = false;
            Happened::Answered(self.answer.borrow().clone().unwrap())
        })
    }

    fn cancel(mut self: Box<Self>) {
        self.is_lost = false;
        self.owner.cancelled.send_modify(|cancelled| *cancelled += 1);
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        if self.is_lost {
            self.call.lost.fetch_add(1, Ordering::AcqRel);
        }
    }
}
