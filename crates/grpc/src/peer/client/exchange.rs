//! One request in a session of another replica, to its answer.
//!
//! ```text
//!   connect ──► sent ──► answered
//!     │          │ ▲
//!     │   lost   ▼ │ asked again under the same name
//!     │        connect ──(10 s)──► nobody knows (sent)
//!     └──► not sent
//! ```
//!
//! Runs in the task of its caller, and goes on in one of its own when the caller gives up, to tell the owner. Before
//! anything was sent a failure is one of the way: the session is looked up anew. Afterwards the request is only ever asked
//! for again, never made again (invariant S2).

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use caribou_core::failure::Code;
use caribou_core::session::NotTaken;
use caribou_ports::mcp::{CallError, ProgressSink};
use caribou_ports::peers::{Exchange, PeerAnswer, PeerError, PeerRequest};
use caribou_proto::peer::v1;
use caribou_proto::peer::v1::failed::Kind;
use caribou_proto::peer::v1::{down, end, up};
use futures::channel::mpsc;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tonic::Status;
use tracing::Instrument as _;
use uuid::Uuid;

use super::connection::Connection;
use super::session::Standing;
use crate::peer::parts::{Broken, Joining};
use crate::peer::{convert, status};

/// What one hop takes of the time of a call.
pub(super) const HOP: Duration = Duration::from_millis(5);

/// A connection that broke off sooner was not worth the name: so often in a row, and nobody asks again.
const BRIEF: Duration = Duration::from_secs(1);
const MOST_BRIEF: u32 = 20;

/// Between two attempts to make a lost connection again.
const REJOIN_PAUSE: Duration = Duration::from_millis(100);

/// How long the owner may take to hear that a call was given up.
const GIVE_UP: Duration = Duration::from_secs(1);

/// The method that requests go over.
const EXCHANGE: &str = "caribou.peer.v1.SessionService/Exchange";

type Outcome = Result<PeerAnswer, CallError>;

/// Resolves when the caller leaves.
type Left = oneshot::Receiver<Infallible>;

/// Asks, and waits for the answer. Dropped, the request is given up where it runs.
pub(super) async fn ask(standing: Arc<Standing>, request: PeerRequest) -> Outcome {
    if let Some(disconnect) = standing.ended() {
        return Err(CallError::Disconnected { disconnect, sent: false });
    }
    let Ok(place) = standing.link.room.clone().try_acquire_owned() else {
        let detail = format!("too many requests to replica {} are in flight", standing.link.peer.boot);
        return Err(CallError::Busy(detail));
    };
    let within = standing.link.options.call_max;
    let exchange = Exchange {
        key: standing.key.clone(),
        epoch: standing.epoch,
        call_id: Uuid::new_v4().to_string(),
        is_again: false,
        hops: 1,
        within,
        request,
    };
    let conversation = Conversation { standing: standing.clone(), exchange, deadline: Instant::now() + within };
    let span = tracing::info_span!(
        "forward",
        otel.name = EXCHANGE,
        otel.kind = "client",
        rpc.system.name = "grpc",
        rpc.method = EXCHANGE,
        caribou.replica = %standing.link.peer.boot,
        session = %standing.key,
    );
    let (stays, left) = oneshot::channel();
    let conversing = async move {
        let outcome = conversation.run(left).await;
        drop(place);
        outcome
    };
    let outcome = Attended { conversing: Some(Box::pin(conversing.instrument(span))), stays: Some(stays) }.await;
    // Nobody but the caller, who is here, ends it without an outcome.
    outcome.unwrap_or_else(|| Err(CallError::StreamEnded("the request broke off in this replica".to_owned())))
}

/// A conversation whose caller listens. Dropped before its end, it goes on by itself to say goodbye.
struct Attended<C: Future + Send + 'static> {
    /// `None` = it is over.
    conversing: Option<Pin<Box<C>>>,
    /// Dropped when the caller leaves.
    stays: Option<oneshot::Sender<Infallible>>,
}

impl<C: Future<Output: Send> + Send + 'static> Future for Attended<C> {
    type Output = C::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<C::Output> {
        let Some(conversing) = &mut self.conversing else { return Poll::Pending };
        let outcome = ready!(conversing.as_mut().poll(context));
        self.conversing = None;
        Poll::Ready(outcome)
    }
}

impl<C: Future + Send + 'static> Drop for Attended<C> {
    fn drop(&mut self) {
        self.stays = None;
        if let (Some(conversing), Ok(runtime)) = (self.conversing.take(), Handle::try_current()) {
            runtime.spawn(async move {
                conversing.await;
            });
        }
    }
}

/// One request, over as many connections as it takes.
struct Conversation {
    standing: Arc<Standing>,
    /// Is asked for again once it may have left.
    exchange: Exchange,
    deadline: Instant,
}

/// What was heard over one connection.
enum Heard {
    /// The answer, or why there is none.
    Ended(Outcome),
    /// The owner did not take it.
    NotTaken(NotTaken),
    /// Asked for again, the owner does not know it.
    UnknownCall,
    /// The connection broke off.
    Broken {
        /// How.
        why: String,
        /// Whether the request may have left.
        sent: bool,
    },
    /// The caller left.
    GivenUp,
}

impl Conversation {
    /// `None` = the caller left.
    async fn run(mut self, mut left: Left) -> Option<Outcome> {
        timeout_at(self.deadline, self.converse(&mut left)).await.unwrap_or_else(|_| {
            let reason = format!("replica {} did not answer in time", self.standing.link.peer.boot);
            Some(Err(CallError::StreamEnded(reason)))
        })
    }

    async fn converse(&mut self, left: &mut Left) -> Option<Outcome> {
        let (mut lost_at, mut brief) = (Instant::now(), 0);
        loop {
            let connection = tokio::select! {
                connection = self.connect(lost_at) => connection,
                _ = &mut *left => return None,
            };
            let connection = match connection {
                Ok(connection) => connection,
                Err(why) => return Some(Err(self.disconnected(why.to_string()))),
            };
            let began = Instant::now();
            let (why, sent) = match self.hear(&connection, left).await {
                Heard::GivenUp => return None,
                Heard::Ended(outcome) => return Some(outcome),
                Heard::NotTaken(why) => return Some(Err(self.disconnected(why.to_string()))),
                Heard::UnknownCall => {
                    let reason = "the connection to the replica was lost, and it does not know the call any more";
                    return Some(Err(self.disconnected(reason)));
                }
                Heard::Broken { why, sent } => (why, sent),
            };
            tracing::debug!(session = %self.standing.key, sent, "the connection broke off in a call: {why}");
            connection.distrust();
            self.exchange.is_again |= sent;
            lost_at = Instant::now();
            brief = if began.elapsed() < BRIEF { brief + 1 } else { 0 };
            if brief > MOST_BRIEF {
                return Some(Err(self.disconnected(why)));
            }
            sleep(REJOIN_PAUSE * brief.min(2).saturating_sub(1)).await;
        }
    }

    /// The session is over for us.
    fn disconnected(&self, reason: impl Into<String>) -> CallError {
        CallError::Disconnected { disconnect: self.standing.end(reason), sent: self.exchange.is_again }
    }

    /// A connection. Tried for a while when the request may have been received, else once.
    async fn connect(&self, lost_at: Instant) -> Result<Connection, PeerError> {
        let link = &self.standing.link;
        loop {
            match link.calls().await {
                Err(PeerError::Unreachable(_))
                    if self.exchange.is_again
                        && lost_at.elapsed() < link.options.rejoin
                        && !link.given_up.is_cancelled() =>
                {
                    sleep(REJOIN_PAUSE).await;
                }
                connected => return connected,
            }
        }
    }

    /// Sends the request and listens until its end.
    async fn hear(&mut self, connection: &Connection, left: &mut Left) -> Heard {
        self.exchange.within = self.deadline.saturating_duration_since(Instant::now()).saturating_sub(HOP);
        let request = convert::request(&self.standing.link.peer.boot, &self.exchange);
        // Room for both messages that there can be.
        let (mut up, ups) = mpsc::channel(1);
        let _ = up.try_send(v1::Up { what: Some(up::What::Request(request)) });
        let mut listening = pin!(listen(connection, ups, listener(&self.exchange.request)));
        tokio::select! {
            heard = &mut listening => heard,
            _ = &mut *left => {
                let _ = up.try_send(v1::Up { what: Some(up::What::Cancel(v1::Cancel {})) });
                let _ = timeout(GIVE_UP, listening).await;
                Heard::GivenUp
            }
        }
    }
}

fn listener(request: &PeerRequest) -> Option<ProgressSink> {
    match request {
        PeerRequest::CallTool(call) => call.progress.clone(),
        PeerRequest::Request(raw) => raw.progress.clone(),
        PeerRequest::ListTools | PeerRequest::TaskQuestions(_) | PeerRequest::AnswerTask { .. } => None,
    }
}

async fn listen(connection: &Connection, ups: mpsc::Receiver<v1::Up>, listener: Option<ProgressSink>) -> Heard {
    let mut downs = match connection.client().exchange(ups).await {
        Ok(downs) => downs.into_inner(),
        Err(status) => return unheard(&status),
    };
    let mut parts = Joining::default();
    loop {
        let down = match downs.message().await {
            Ok(Some(down)) => down,
            Ok(None) => return Heard::Broken { why: "the answer ended without its end".to_owned(), sent: true },
            Err(status) => return unheard(&status),
        };
        match down.what {
            Some(down::What::End(end)) => return ended(end, parts),
            Some(down::What::Part(part)) => match parts.add(&part) {
                Ok(()) => {}
                Err(Broken) => return Heard::Ended(Err(broken_answer())),
            },
            Some(report) => {
                if let (Ok(Some(progress)), Some(listener)) = (convert::progress(report), &listener) {
                    listener(progress);
                }
            }
            // A newer replica says something that we have no word for.
            None => {}
        }
    }
}

/// What a status says of the request.
fn unheard(status: &Status) -> Heard {
    match status::refusal_of(status) {
        None => Heard::Broken { why: status::told(status), sent: !status::is_never_sent(status) },
        Some(PeerError::NotTaken(why)) => Heard::NotTaken(why),
        Some(PeerError::Unreachable(detail)) => Heard::Ended(Err(CallError::NotSent(detail))),
        Some(PeerError::Failed { code, detail, .. }) => Heard::Ended(Err(match code {
            Code::Busy => CallError::Busy(detail),
            Code::Denied => CallError::Denied(detail),
            _ => CallError::NotSent(detail),
        })),
    }
}

/// What the end of an answer says.
fn ended(end: v1::End, parts: Joining) -> Heard {
    match end.how {
        Some(end::How::Done(done)) => {
            let answer = parts.end(&done).map_err(|Broken| broken_answer());
            let answer = answer.and_then(|text| convert::answer(done, text).map_err(|_| broken_answer()));
            Heard::Ended(answer)
        }
        Some(end::How::Failed(failed)) => match failed.kind() {
            Kind::UnknownCall => Heard::UnknownCall,
            Kind::NotTaken => match status::of_refusal(failed.refusal.unwrap_or_default()) {
                PeerError::NotTaken(why) => Heard::NotTaken(why),
                _ => Heard::NotTaken(NotTaken::NotOwner),
            },
            _ => Heard::Ended(Err(convert::call_error(failed).unwrap_or_else(broken_answer))),
        },
        None => Heard::Ended(Err(broken_answer())),
    }
}

/// The call was made, and what came of it did not come over whole.
fn broken_answer() -> CallError {
    CallError::StreamEnded("the answer of another replica is broken".to_owned())
}
