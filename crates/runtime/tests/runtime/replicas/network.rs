//! The way between replicas of one test: their verbs, called at once, over a network that can be cut.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou_core::ids::{BootId, Epoch, Scope, ServerName, SessionKey};
use caribou_ports::BoxFuture;
use caribou_ports::mcp::{
    CallError, Disconnect, Progress, ProgressSink, RawRequest, Session, SessionFacts, TaskQuestion, ToolCall,
    ToolListing,
};
use caribou_ports::peers::{
    ClientWord, Exchange, Nudge, OpenedThere, PeerAddress, PeerAnswer, PeerError, PeerRequest, Peers, Wanted,
};
use caribou_runtime::{ExchangeRefused, RunningExchange, Runtime};
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// After so long without a sign of life a connection counts as lost.
const SILENCE: Duration = Duration::from_secs(8);

/// Resolves when a replica moves.
type Moves = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// Every replica, by its life, and who cannot be reached.
#[derive(Clone, Default)]
pub(super) struct Network(Arc<Cables>);

#[derive(Default)]
struct Cables {
    replicas: Mutex<BTreeMap<String, Runtime>>,
    cut: Mutex<BTreeSet<String>>,
    /// Those that may stand still.
    moves: Mutex<BTreeMap<String, Moves>>,
    calls: AtomicU64,
    /// Calls that crossed from one replica to another.
    crossed: AtomicU64,
}

impl Network {
    pub(super) fn plug(&self, boot: &str, replica: Runtime) {
        self.0.replicas.lock().unwrap().insert(boot.to_owned(), replica);
    }

    /// One that may stand still: `moves` resolves while it does not.
    pub(super) fn plug_behind(
        &self,
        boot: &str,
        replica: Runtime,
        moves: impl Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) {
        self.0.moves.lock().unwrap().insert(boot.to_owned(), Box::new(moves));
        self.plug(boot, replica);
    }

    pub(super) fn unplug(&self, boot: &str) {
        self.0.replicas.lock().unwrap().remove(boot);
    }

    pub(super) fn cut(&self, boot: &str) {
        self.0.cut.lock().unwrap().insert(boot.to_owned());
    }

    pub(super) fn mend(&self, boot: &str) {
        self.0.cut.lock().unwrap().remove(boot);
    }

    pub(super) fn crossed(&self) -> u64 {
        self.0.crossed.load(Ordering::SeqCst)
    }

    /// Resolves when a replica moves, with whether it did soon enough for its connections to live.
    async fn moves(&self, boot: &BootId) -> bool {
        let moves = self.0.moves.lock().unwrap().get(boot.as_str()).map(|moves| moves());
        match moves {
            Some(moves) => timeout(SILENCE, moves).await.is_ok(),
            None => true,
        }
    }

    /// Resolves when a replica has stood still for too long.
    async fn falls_silent(&self, boot: &BootId) {
        while self.moves(boot).await {
            sleep(Duration::from_secs(1)).await;
        }
    }

    async fn reached(&self, boot: &BootId) -> Option<Runtime> {
        if self.moves(boot).await { self.reach(boot) } else { None }
    }

    fn reach(&self, boot: &BootId) -> Option<Runtime> {
        if self.0.cut.lock().unwrap().contains(boot.as_str()) {
            return None;
        }
        self.0.replicas.lock().unwrap().get(boot.as_str()).cloned()
    }
}

impl Peers for Network {
    fn open(&self, peer: PeerAddress, wanted: Wanted) -> BoxFuture<'static, Result<OpenedThere, PeerError>> {
        let network = self.clone();
        Box::pin(async move {
            let Some(replica) = network.reached(&peer.boot).await else {
                return Err(PeerError::Unreachable("the cable is cut".to_owned()));
            };
            let key = wanted.key.clone();
            let opened = replica.open_for_peer(&peer.boot, 1, wanted).await?;
            let (epoch, facts) = (opened.epoch, opened.facts);
            let session = There { network, boot: peer.boot, key, epoch, facts, end: watch::Sender::new(None) };
            Ok(OpenedThere { session: Arc::new(session), epoch })
        })
    }

    fn close_sessions(
        &self,
        peer: PeerAddress,
        scope: Scope,
        server: Option<ServerName>,
    ) -> BoxFuture<'static, Result<u64, PeerError>> {
        let network = self.clone();
        Box::pin(async move {
            match network.reached(&peer.boot).await {
                Some(replica) => replica.close_for_peer(&peer.boot, scope, server).await,
                None => Err(PeerError::Unreachable("the cable is cut".to_owned())),
            }
        })
    }

    fn tell(&self, peer: PeerAddress, word: ClientWord) -> BoxFuture<'static, Result<bool, PeerError>> {
        let heard = match self.reach(&peer.boot) {
            Some(replica) => replica.hear_for_peer(&peer.boot, word),
            None => Err(PeerError::Unreachable("the cable is cut".to_owned())),
        };
        Box::pin(std::future::ready(heard))
    }

    fn nudge(&self, _: PeerAddress, _: Nudge) {}

    fn keep(&self, _: &[BootId]) {}
}

/// A session of another replica.
struct There {
    network: Network,
    boot: BootId,
    key: SessionKey,
    epoch: Epoch,
    facts: SessionFacts,
    end: watch::Sender<Option<Disconnect>>,
}

/// Cancels what its caller gives up.
struct Cancelling(Option<RunningExchange>);

impl Drop for Cancelling {
    fn drop(&mut self) {
        if let Some(running) = self.0.take() {
            running.cancel();
        }
    }
}

impl There {
    async fn ask(&self, request: PeerRequest, progress: Option<ProgressSink>) -> Result<PeerAnswer, CallError> {
        let lost = |sent| {
            let disconnect = Disconnect { reason: "the replica is gone".to_owned(), exit: None, stderr: String::new() };
            self.end.send_replace(Some(disconnect.clone()));
            CallError::Disconnected { disconnect, sent }
        };
        let Some(replica) = self.network.reached(&self.boot).await else { return Err(lost(false)) };
        let call_id = format!("call-{}", self.network.0.calls.fetch_add(1, Ordering::SeqCst));
        self.network.0.crossed.fetch_add(1, Ordering::SeqCst);
        let exchange = Exchange {
            key: self.key.clone(),
            epoch: self.epoch,
            call_id,
            is_again: false,
            hops: 1,
            within: Duration::from_secs(300),
            request,
        };
        let running = match replica.exchange_for_peer(&self.boot, exchange) {
            Ok(running) => running,
            Err(ExchangeRefused::NotTaken(_)) => return Err(lost(false)),
            Err(ExchangeRefused::Busy(why)) => return Err(CallError::Busy(why)),
            Err(ExchangeRefused::UnknownCall) => return Err(lost(true)),
        };
        let mut running = Cancelling(Some(running));
        let exchange = running.0.as_mut().unwrap();
        let answered = async {
            loop {
                match (exchange.next().await, &progress) {
                    (Ok(report), Some(progress)) => progress(report),
                    (Ok(_), None) => {}
                    (Err(answer), _) => return answer,
                }
            }
        };
        let answer = tokio::select! {
            answer = answered => answer,
            () = self.network.falls_silent(&self.boot) => Err(lost(true)),
        };
        drop(running.0.take());
        answer
    }

    async fn result(&self, request: PeerRequest, heard: Option<ProgressSink>) -> Result<Box<RawValue>, CallError> {
        match self.ask(request, heard).await? {
            PeerAnswer::Result(result) => Ok((*result).to_owned()),
            other => panic!("another answer: {other:?}"),
        }
    }
}

/// Only says that somebody listens.
fn listened(_: Progress) {}

impl Session for There {
    fn facts(&self) -> &SessionFacts {
        &self.facts
    }

    fn call_tool(&self, mut call: ToolCall) -> BoxFuture<'_, Result<Box<RawValue>, CallError>> {
        let heard = call.progress.take();
        call.progress = heard.as_ref().map(|_| Arc::new(listened) as ProgressSink);
        Box::pin(self.result(PeerRequest::CallTool(call), heard))
    }

    fn request(&self, request: RawRequest) -> BoxFuture<'_, Result<Box<RawValue>, CallError>> {
        Box::pin(self.result(PeerRequest::Request(request), None))
    }

    fn task_questions(&self, _: &str) -> BoxFuture<'_, Result<Vec<TaskQuestion>, CallError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn answer_task(&self, _: &str, _: &str, _: Box<RawValue>) -> BoxFuture<'_, Result<bool, CallError>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<ToolListing, CallError>> {
        Box::pin(std::future::ready(Ok(ToolListing::default())))
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn ended(&self) -> BoxFuture<'static, Disconnect> {
        let mut end = self.end.subscribe();
        Box::pin(async move {
            let ended = end.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
            match ended {
                Some(ended) => ended,
                None => std::future::pending().await,
            }
        })
    }

    fn stderr_tail(&self) -> String {
        String::new()
    }
}
