//! One call of another replica, while it runs and for a while after.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_ports::BoxFuture;
use caribou_ports::mcp::{CallError, LISTEN, Progress, ProgressSink, Session};
use caribou_ports::peers::{PeerAnswer, PeerRequest};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tracing::{Instrument as _, Span};

use super::book::CallBook;
use crate::session::Admitted;
use crate::survived::survived;

/// How long a call goes on whose caller was lost, so that it can be joined: longer than it takes to notice that a
/// connection is dead (durability.md §6, keepalive) and to make another.
const REJOIN: Duration = Duration::from_secs(12);

/// Reports of progress that wait for a slow connection; more are dropped, as progress may be.
const PROGRESS_WAITING: usize = 64;

/// What became of it.
type Answer = Arc<Result<PeerAnswer, CallError>>;

/// One call, as the book knows it.
pub(crate) struct Call {
    answer: watch::Sender<Option<Answer>>,
    /// Whether it may report.
    reports: bool,
    /// Where progress goes: to whoever joined last.
    listener: Mutex<Option<mpsc::Sender<Progress>>>,
    /// Who waits for it.
    callers: AtomicUsize,
    given_up: watch::Sender<bool>,
}

impl Call {
    /// One that somebody is heard in, if it `reports`.
    pub(crate) fn new(reports: bool) -> Arc<Self> {
        Arc::new(Self {
            answer: watch::Sender::new(None),
            reports,
            listener: Mutex::default(),
            callers: AtomicUsize::new(0),
            given_up: watch::Sender::new(false),
        })
    }

    /// Somebody waits for it from now on.
    pub(crate) fn join(self: &Arc<Self>) -> RunningExchange {
        self.callers.fetch_add(1, Ordering::AcqRel);
        let progress = self.reports.then(|| {
            let (listener, progress) = mpsc::channel(PROGRESS_WAITING);
            *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
            progress
        });
        RunningExchange { answer: self.answer.subscribe(), call: self.clone(), progress, work: None, is_lost: true }
    }

    /// Where the session reports progress to.
    pub(crate) fn progress(self: &Arc<Self>) -> ProgressSink {
        let call = Arc::downgrade(self);
        Arc::new(move |progress| {
            let Some(call) = call.upgrade() else { return };
            let listener = call.listener.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(listener) = &*listener {
                // A connection that is too slow for progress goes without it.
                let _ = listener.try_send(progress);
            }
        })
    }

    /// Makes the call, and waits for it.
    pub(crate) fn run(
        self: Arc<Self>,
        book: CallBook,
        call_id: String,
        admitted: Admitted,
        request: PeerRequest,
        within: Duration,
    ) -> RunningExchange {
        let mut running = self.join();
        let work = async move {
            let mut given_up = self.given_up.subscribe();
            let (handle, session) = (admitted.handle.clone(), admitted.session.clone());
            // Whoever only watches must not hold up the hand-over of the session.
            let watches = matches!(&request, PeerRequest::Request(raw) if raw.method == LISTEN);
            let admitted = (!watches).then_some(admitted);
            let outcome = tokio::select! {
                outcome = survived(ask(&*session, request)) => outcome,
                never = handle.stays_used(), if watches => match never {},
                _ = given_up.wait_for(|given_up| *given_up) => None,
                () = tokio::time::sleep(within) => None,
            };
            // Given up, or too late: dropping the request has told the server, and nobody waits for what comes of it.
            let lost = || Err(CallError::StreamEnded("the call was given up".to_owned()));
            let outcome = outcome.unwrap_or_else(lost);
            handle.asked(&outcome);
            drop(admitted);
            let bytes = size(&outcome);
            self.answer.send_replace(Some(Arc::new(outcome)));
            *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = None;
            book.ended(&call_id, bytes);
        };
        running.work = Some(Box::pin(work.instrument(Span::current())));
        running
    }
}

/// A call of another replica, as long as somebody waits for it. Dropped before its answer was taken, its caller counts as
/// lost: the call goes on for a while, so that it can be asked for again.
///
/// Whoever began the call makes it by waiting, and leaves it to a task of its own when it is dropped: most calls wake
/// one task less.
pub struct RunningExchange {
    call: Arc<Call>,
    answer: watch::Receiver<Option<Answer>>,
    /// `None` = it does not report.
    progress: Option<mpsc::Receiver<Progress>>,
    /// What is left of the call itself; `None` = somebody else makes it, or it is over.
    work: Option<BoxFuture<'static, ()>>,
    is_lost: bool,
}

impl RunningExchange {
    /// A report of progress that is there already.
    pub fn ready_progress(&mut self) -> Option<Progress> {
        self.progress.as_mut()?.try_recv().ok()
    }

    /// The answer. May be dropped and asked for again.
    ///
    /// # Errors
    /// As the session said it.
    pub async fn answer(&mut self) -> Result<PeerAnswer, CallError> {
        let Self { answer, work, .. } = self;
        tokio::select! {
            biased;
            () = made(work) => {}
            _ = answer.wait_for(Option::is_some) => {}
        }
        let answer = answer.borrow().clone();
        self.is_lost = false;
        match answer.as_deref() {
            Some(answer) => answer.clone(),
            None => Err(CallError::StreamEnded("the replica stops".to_owned())),
        }
    }

    /// What happens next: a report of progress or, after the last one, the answer. May be dropped and asked again.
    ///
    /// # Errors
    /// None: an `Err` is the answer.
    pub async fn next(&mut self) -> Result<Progress, Result<PeerAnswer, CallError>> {
        let Self { answer, progress, work, .. } = self;
        tokio::select! {
            biased;
            report = reported(progress) => return Ok(report),
            () = made(work) => {}
            _ = answer.wait_for(Option::is_some) => {}
        }
        match self.ready_progress() {
            Some(report) => Ok(report),
            None => Err(self.answer().await),
        }
    }

    /// The caller has given the call up: its server is told.
    pub fn cancel(mut self) {
        self.is_lost = false;
        self.call.given_up.send_replace(true);
    }
}

/// The next report of progress; never when there are no more.
async fn reported(progress: &mut Option<mpsc::Receiver<Progress>>) -> Progress {
    if let Some(reports) = progress
        && let Some(report) = reports.recv().await
    {
        return report;
    }
    std::future::pending().await
}

/// Resolves when the call was made; never when somebody else makes it.
async fn made(work: &mut Option<BoxFuture<'static, ()>>) {
    match work {
        Some(making) => making.await,
        None => std::future::pending().await,
    }
    *work = None;
}

impl Drop for RunningExchange {
    fn drop(&mut self) {
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
        let left = self.call.callers.fetch_sub(1, Ordering::AcqRel) - 1;
        if !self.is_lost || left > 0 {
            return;
        }
        let call = self.call.clone();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(REJOIN).await;
                if call.callers.load(Ordering::Acquire) == 0 {
                    call.given_up.send_replace(true);
                }
            });
        }
    }
}

async fn ask(session: &dyn Session, request: PeerRequest) -> Result<PeerAnswer, CallError> {
    Ok(match request {
        PeerRequest::CallTool(call) => PeerAnswer::Result(session.call_tool(call).await?.into()),
        PeerRequest::Request(request) => PeerAnswer::Result(session.request(request).await?.into()),
        PeerRequest::ListTools => PeerAnswer::Tools(session.list_tools().await?),
        PeerRequest::TaskQuestions(task_id) => PeerAnswer::Questions(session.task_questions(&task_id).await?),
        PeerRequest::AnswerTask { task_id, question, answer } => {
            PeerAnswer::Answered(session.answer_task(&task_id, &question, answer).await?)
        }
    })
}

/// The bytes of an answer, as far as they count.
fn size(outcome: &Result<PeerAnswer, CallError>) -> usize {
    match outcome {
        Ok(PeerAnswer::Result(result)) => result.get().len(),
        Ok(PeerAnswer::Tools(listing)) => listing.tools.iter().map(|tool| tool.get().len()).sum(),
        Ok(PeerAnswer::Questions(questions)) => questions.iter().map(|question| question.params.get().len()).sum(),
        Ok(PeerAnswer::Answered(_)) | Err(_) => 0,
    }
}
