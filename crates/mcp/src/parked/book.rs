//! The calls of one session that wait for their callers, and the rounds that went on not long ago.
//!
//! Owns that a state is good once: taking a call out of the book is what lets a round begin, so two who bring the same
//! state cannot both go on with it (mcp.md 14.7, 4). The second one joins the first if it brings the same answers, since a
//! client whose stream broke must ask again; with others it is refused. Everything here is bounded in number and in time
//! (invariant B1). A state that is not in the book is never a reason to make a call (S2).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use caribou_core::raw::Members;
use caribou_ports::mcp::relayed::{GONE, PARKED};
use caribou_ports::mcp::{CallError, ProgressSink};
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::call::{Next, ParkedCall};
use super::url::asked_instead;
use crate::wire::errors::{CAPABILITY_MISSING, INVALID_PARAMS};
use crate::wire::ids::Outcome;

/// How long a call waits for its caller: as long as servers of the legacy era commonly wait for a person (mcp.md 14.8).
const PATIENCE: Duration = Duration::from_secs(600);

/// Calls of one session that wait at once: as many as run at once in one.
const MAX_PARKED: usize = 64;

/// Rounds that are remembered, those that run not counted: each of those was parked before.
const MAX_ROUNDS: usize = 64;

/// How long what came of a round is kept for a caller that has to ask again.
const REMEMBERED: Duration = Duration::from_secs(60);

/// A larger outcome is told to whoever waits for it, and not kept.
const LARGEST_KEPT: usize = 256 * 1024;

/// How long a round goes on whose caller went away: it takes less to notice that a stream is cut and to ask again.
const REJOIN: Duration = Duration::from_secs(10);

/// How often it is looked whether somebody came back.
const LOOK: Duration = Duration::from_millis(250);

/// What becomes of an elicitation that nobody answers.
const CANCEL: &str = r#"{"action":"cancel"}"#;

/// What a caller brings back.
pub(crate) struct Brought {
    /// The state: JSON text of a string.
    pub(crate) state: Box<RawValue>,
    /// Its answers; `None` = it brings none.
    pub(crate) answers: Option<Box<RawValue>>,
    /// Who it is.
    pub(crate) principal: String,
}

/// The calls of one session.
pub(crate) struct Parks {
    book: Mutex<Book>,
    over: CancellationToken,
}

#[derive(Default)]
struct Book {
    waiting: HashMap<String, Waiting>,
    rounds: HashMap<String, Round>,
}

/// A call that waits for its caller.
struct Waiting {
    call: Arc<ParkedCall>,
    expiry: JoinHandle<()>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.expiry.abort();
    }
}

/// What was done with a state.
struct Round {
    principal: String,
    answers: String,
    came: Arc<watch::Sender<Option<Outcome>>>,
    ended: Option<Instant>,
}

/// What a caller is told whose call is not here.
fn lost() -> CallError {
    CallError::NotParked(
        "the interaction was lost: the call that asked is not waiting any more, since its session ended or nobody answered \
         in time. It was not made again; call again"
            .to_owned(),
    )
}

/// The error for a caller that cannot be asked what its server asks; `required` names the capabilities (mcp.md §2.2).
pub(crate) fn missing(required: &str) -> CallError {
    let data = RawValue::from_string(format!(r#"{{"requiredCapabilities":{required}}}"#));
    CallError::Rpc {
        code: CAPABILITY_MISSING,
        message: "the server asks for something that the client did not declare".to_owned(),
        data: data.ok().map(Arc::from),
    }
}

impl Parks {
    /// Those of a session that ends with `over`.
    pub(crate) fn new(over: CancellationToken) -> Arc<Self> {
        Arc::new(Self { book: Mutex::default(), over })
    }

    /// Whether a call waits here, or a round goes on.
    pub(crate) fn is_any(&self) -> bool {
        let book = self.book();
        !book.waiting.is_empty() || book.rounds.values().any(|round| round.ended.is_none())
    }

    /// Has a call wait that was asked something: what its caller is answered. `None` = there is no room.
    fn park(self: &Arc<Self>, call: Arc<ParkedCall>) -> Option<Box<RawValue>> {
        let state = format!("{PARKED}{}", Uuid::new_v4().simple());
        let asked = call.asking.questions();
        let told = format!(r#"{{"resultType":"input_required","inputRequests":{asked},"requestState":"{state}"}}"#);
        let told = RawValue::from_string(told).ok()?;
        let mut book = self.book();
        if book.waiting.len() >= MAX_PARKED || self.over.is_cancelled() {
            return None;
        }
        call.hearing.set(None);
        call.asking.park(true);
        let (parks, over, name) = (Arc::downgrade(self), self.over.clone(), state.clone());
        let expiry = tokio::spawn(async move {
            if over.run_until_cancelled(sleep(PATIENCE)).await.is_none() {
                return;
            }
            let Some(expired) = parks.upgrade().and_then(|parks| parks.book().waiting.remove(&name)) else { return };
            let call = expired.call.clone();
            // Letting go of it stops this very task at its next pause, and there is a farewell to be said first.
            tokio::spawn(async move { call.asking.give_up(CANCEL).await });
        });
        book.waiting.insert(state, Waiting { call, expiry });
        Some(told)
    }

    /// Has a call wait that was asked something for the first time; what its caller is answered.
    pub(crate) async fn begin(self: &Arc<Self>, call: &Arc<ParkedCall>) -> Outcome {
        self.parked_or_done(call, Next::Asked).await
    }

    /// What the caller of a call is answered: what it is asked, for which the call waits, or what comes of it.
    async fn parked_or_done(self: &Arc<Self>, call: &Arc<ParkedCall>, mut next: Next) -> Outcome {
        loop {
            match next {
                Next::Done(outcome) => return asked_instead(outcome, &call.asking),
                Next::Lacking(required) => {
                    call.decline().await;
                    return Err(missing(required));
                }
                Next::Asked => match self.park(call.clone()) {
                    Some(told) => return Ok(told),
                    None => call.decline().await,
                },
            }
            next = call.next().await;
        }
    }

    /// Goes on with the call that waits under the state that is brought: the answer, or what is asked next.
    pub(crate) async fn resume(self: &Arc<Self>, brought: Brought, progress: Option<ProgressSink>) -> Outcome {
        let mut came = self.round(brought, progress)?;
        let came = came.wait_for(Option::is_some).await;
        came.ok().and_then(|came| came.clone()).unwrap_or_else(|| Err(lost()))
    }

    /// The round that this state and these answers begin, or began before.
    fn round(
        self: &Arc<Self>,
        brought: Brought,
        progress: Option<ProgressSink>,
    ) -> Result<watch::Receiver<Option<Outcome>>, CallError> {
        let Brought { state, answers, principal } = brought;
        let state: String = serde_json::from_str(state.get()).map_err(|_| lost())?;
        let answers = answers.unwrap_or_default();
        let mut book = self.book();
        book.forget();
        if let Some(round) = book.rounds.get(&state).filter(|round| round.principal == principal) {
            if round.answers != answers.get() {
                return Err(CallError::NotParked(
                    "what the server asked was answered already, and otherwise: the call went on with the first answer"
                        .to_owned(),
                ));
            }
            return Ok(round.came.subscribe());
        }
        // What one principal made cannot be answered by another (invariant P1).
        let is_theirs = |waiting: &Waiting| waiting.call.asking.principal() == principal;
        if !book.waiting.get(&state).is_some_and(is_theirs) {
            return Err(lost());
        }
        let is_object = answers.get() == "null" || Members::of(&answers).is_some();
        if !is_object {
            let message = "`inputResponses` must be an object".to_owned();
            return Err(CallError::Rpc { code: INVALID_PARAMS, message, data: None });
        }
        let Some(waiting) = book.waiting.remove(&state) else { return Err(lost()) };
        let call = waiting.call.clone();
        if Members::of(&answers).is_some_and(|answers| answers.get(GONE).is_some()) {
            drop(book);
            // The last hold on it: the server hears the answers, then the cancel.
            tokio::spawn(async move { call.asking.give_up(CANCEL).await });
            return Err(CallError::NotParked("its caller cancelled it".to_owned()));
        }
        call.asking.park(false);
        call.hearing.set(progress);
        let came = Arc::new(watch::Sender::new(None));
        let heard = came.subscribe();
        let round = Round { principal, answers: answers.get().to_owned(), came: came.clone(), ended: None };
        book.rounds.insert(state.clone(), round);
        drop(book);
        let (parks, over) = (self.clone(), self.over.clone());
        tokio::spawn(async move {
            let going = parks.go_on(&call, &answers, &came);
            let outcome = over.run_until_cancelled(going).await.flatten();
            parks.end(&state, &came, outcome);
        });
        Ok(heard)
    }

    /// Brings the answers and waits for what comes of them; `None` = nobody waits for it any more.
    async fn go_on(
        self: &Arc<Self>,
        call: &Arc<ParkedCall>,
        answers: &RawValue,
        came: &watch::Sender<Option<Outcome>>,
    ) -> Option<Outcome> {
        let brought = Members::of(answers).unwrap_or_else(|| Members(Vec::new()));
        call.asking.answer(&brought).await;
        let goes_on = async {
            let next = call.next().await;
            self.parked_or_done(call, next).await
        };
        tokio::select! {
            outcome = goes_on => Some(outcome),
            () = unheard(came) => None,
        }
    }

    /// Tells those who wait what came of a round, and keeps it for a while if it is small.
    fn end(&self, state: &str, came: &Arc<watch::Sender<Option<Outcome>>>, outcome: Option<Outcome>) {
        let mut book = self.book();
        let Some(outcome) = outcome else {
            book.rounds.remove(state);
            return;
        };
        let is_large = matches!(&outcome, Ok(result) if result.get().len() > LARGEST_KEPT);
        came.send_replace(Some(outcome));
        if let Some(round) = book.rounds.get_mut(state) {
            round.ended = Some(Instant::now());
            if is_large {
                let gone = CallError::NotParked("the call went on, and its result is too large to be kept".to_owned());
                round.came = Arc::new(watch::Sender::new(Some(Err(gone))));
            }
        }
    }

    /// Lets go of everything: the session ends.
    pub(crate) fn close(&self) {
        let Book { waiting, rounds } = std::mem::take(&mut *self.book());
        drop((waiting, rounds));
    }

    /// The book is consistent between any two statements, so a panic elsewhere does not spoil it.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// Forgets rounds that are too old or too many.
    fn forget(&mut self) {
        self.rounds.retain(|_, round| round.ended.is_none_or(|ended| ended.elapsed() < REMEMBERED));
        while self.rounds.values().filter(|round| round.ended.is_some()).count() >= MAX_ROUNDS {
            let ended = self.rounds.iter().filter_map(|(state, round)| Some((round.ended?, state.clone())));
            let Some((_, oldest)) = ended.min() else { break };
            self.rounds.remove(&oldest);
        }
    }
}

/// Resolves when nobody has waited for a while.
async fn unheard(came: &watch::Sender<Option<Outcome>>) {
    loop {
        came.closed().await;
        let since = Instant::now();
        // Whoever comes back has the whole time again when it leaves.
        while came.is_closed() {
            if since.elapsed() >= REJOIN {
                return;
            }
            sleep(LOOK).await;
        }
    }
}

#[cfg(test)]
mod tests;
