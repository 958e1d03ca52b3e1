//! One submit, from the stored intent to the stored handle, in a task of its own (contract 6.4; invariant T1).
//!
//! ```text
//!   note_intent ─► driver.submit ─► record ─► the caller hears the local name
//!                       │             └ duplicate: nothing else · not stored: the remote is told to cancel
//!                       └ refused, unreadable: withdrawn · nobody can tell: marked unknown
//! ```
//!
//! It runs on when its caller goes away, so that what the remote has accepted is stored or cancelled whatever happens.
//! A remote is asked once. Dropping the caller's side before it has answered cancels the call there, and the intent is
//! marked unknown; afterwards what it accepted is cancelled. A cancellation is waited for at most 5 s by the caller, and
//! goes on without it.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::failure::{Class, Code};
use caribou_core::task::event::{Facts, event};
use caribou_core::task::limits::COMPENSATION;
use caribou_core::task::parse::Misread;
use caribou_core::task::poll_plan::after_answer;
use caribou_core::task::submission::{
    Compensation, Intent, NoHandle, NotRecorded, check_remote_id, compensation, without_handle,
};
use caribou_core::task::{Pin, Snapshot, Status};
use caribou_ports::store::{Change, Handle, Recorded, Settled, SubmitKey, TaskClaim, TaskIntent};
use caribou_ports::task_driver::{
    DriverError, RemoteError, RemoteTask, SubmitTask, Submitted, TaskDriver, TaskHandle, Upstream,
};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::{Instrument as _, Span};

use super::drivers::ORDINARY;
use super::road::{About, TaskRoad};
use crate::error::VerbError;

/// Between two attempts to store a handle.
const RECORD_AGAIN: Duration = Duration::from_millis(100);

/// What a submit came to.
pub(crate) enum Outcome {
    /// The task is on record.
    Task(Status),
    /// The remote answered at once: there is no task.
    Answered(Box<RawValue>),
}

/// A submit whose intent is stored.
pub(crate) struct Submission {
    pub(crate) road: Arc<TaskRoad>,
    pub(crate) driver: Arc<dyn TaskDriver>,
    pub(crate) intent: TaskIntent,
    pub(crate) claim: TaskClaim,
    pub(crate) upstream: Box<dyn Upstream>,
    pub(crate) arguments: Option<Box<RawValue>>,
    /// When the caller's own bound ends.
    pub(crate) deadline: Instant,
}

impl Submission {
    /// Runs it to its end; the caller may stop waiting at any time.
    pub(crate) fn begin(self) -> oneshot::Receiver<Result<Outcome, VerbError>> {
        let (done, outcome) = oneshot::channel();
        tokio::spawn(self.run(done).instrument(Span::current()));
        outcome
    }

    async fn run(self, mut caller: oneshot::Sender<Result<Outcome, VerbError>>) {
        let asked = tokio::select! {
            biased;
            asked = self.ask() => asked,
            () = caller.closed() => Err(DriverError::Remote(RemoteError::new(Code::OutcomeUnknown, GONE))),
        };
        match asked {
            Ok(Submitted::Task(remote)) => self.keep(remote, caller).await,
            Ok(Submitted::Answered(result)) => {
                self.withdraw().await;
                let _ = caller.send(Ok(Outcome::Answered(result)));
            }
            Err(error) => {
                let _ = caller.send(Err(self.without_handle(error).await));
            }
        }
    }

    async fn ask(&self) -> Result<Submitted, DriverError> {
        let submit = SubmitTask {
            task: self.intent.task,
            submit_key: self.intent.submit_key,
            task_name: &self.intent.task_name,
            arguments: self.arguments.as_deref(),
        };
        let asked = timeout_at(self.deadline, self.driver.submit(&*self.upstream, submit)).await;
        asked.unwrap_or_else(|_| Err(RemoteError::new(Code::Timeout, "the bound of the call has passed").into()))
    }

    /// Takes the intent back or marks it; the error that the caller hears.
    async fn without_handle(&self, error: DriverError) -> VerbError {
        let end = match &error {
            DriverError::Misread(Misread::ToolFailed(_)) | DriverError::NotSupported(_) => NoHandle::Refused,
            DriverError::Misread(Misread::Protocol(_)) => NoHandle::Unreadable,
            DriverError::Remote(remote) if remote.code.class() == Class::Unknown => NoHandle::Ambiguous,
            DriverError::Remote(_) => NoHandle::Refused,
        };
        let code = match &error {
            DriverError::Misread(_) => Code::UpstreamError,
            DriverError::Remote(remote) => remote.code,
            DriverError::NotSupported(_) => Code::NotFound,
        };
        match without_handle(end) {
            Intent::Withdraw => {
                self.withdraw().await;
                VerbError::new(code, error.to_string())
            }
            Intent::MarkUnknown => {
                self.mark_unknown(&error.to_string()).await;
                let detail = format!(
                    "{error}; the server may have begun the task, which is on record as `{}` with an unknown outcome",
                    self.intent.task
                );
                VerbError::new(code, detail)
            }
        }
    }

    /// Stores the handle; cancels at the remote what cannot be stored.
    pub(super) async fn keep(self, remote: RemoteTask, caller: oneshot::Sender<Result<Outcome, VerbError>>) {
        let recorded = self.recorded(&remote).await;
        if recorded.is_ok() {
            self.keep_session(&remote);
        }
        let (failure, error) = match recorded {
            Ok(()) if caller.is_closed() => (NotRecorded::CallerGone, VerbError::new(Code::OutcomeUnknown, GONE)),
            Ok(()) => match caller.send(Ok(Outcome::Task(Status::Submitted))) {
                Ok(()) => return,
                // It went away in this very moment, and has not heard of the task.
                Err(_) => return self.cancel(&remote).await,
            },
            Err(failed) => failed,
        };
        if failure == NotRecorded::DoesNotFit {
            self.withdraw().await;
        }
        match compensation(failure) {
            Compensation::None => {
                let _ = caller.send(Err(error));
            }
            Compensation::CancelRemote => {
                let mut cancel = std::pin::pin!(self.cancel(&remote));
                let is_over = timeout(COMPENSATION, &mut cancel).await.is_ok();
                let _ = caller.send(Err(error));
                if !is_over {
                    cancel.await;
                }
            }
        }
    }

    async fn recorded(&self, remote: &RemoteTask) -> Result<(), (NotRecorded, VerbError)> {
        check_remote_id(&remote.remote_id)
            .map_err(|misread| (NotRecorded::DoesNotFit, VerbError::new(Code::UpstreamError, misread.to_string())))?;
        let until = Instant::now() + COMPENSATION;
        loop {
            let handle = Handle {
                remote_id: remote.remote_id.clone(),
                driver_data: remote.driver_data.clone(),
                session_id: self.intent.is_pinned.then(|| self.upstream.session_id()).flatten(),
                change: self.change(Snapshot::bare(Status::Submitted)),
                again: self.first_poll(remote),
            };
            let error = match timeout_at(until, self.road.store.record(self.claim.clone(), handle)).await {
                Ok(Ok(Recorded::Recorded)) => return Ok(()),
                Ok(Ok(Recorded::Duplicate)) => {
                    let detail = format!(
                        "duplicate remote task: server `{}` named a task that is followed already; it goes on",
                        self.intent.server
                    );
                    return Err((NotRecorded::Duplicate, VerbError::new(Code::Conflict, detail)));
                }
                Ok(Ok(Recorded::Fenced)) if self.is_on_record().await => return Ok(()),
                Ok(Ok(Recorded::Fenced)) => {
                    let detail = "the task was not stored in time, so it is cancelled; submit it again";
                    return Err((NotRecorded::Fenced, VerbError::new(Code::Unavailable, detail)));
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it did not answer in time".to_owned(),
            };
            // A commit whose answer was lost is no failure.
            if self.is_on_record().await {
                return Ok(());
            }
            if Instant::now() + RECORD_AGAIN >= until {
                let detail = format!("the task cannot be stored, so it is cancelled: {error}");
                return Err((NotRecorded::Store, VerbError::new(Code::Unavailable, detail)));
            }
            sleep(RECORD_AGAIN).await;
        }
    }

    /// Until the task is asked about for the first time.
    fn first_poll(&self, remote: &RemoteTask) -> Duration {
        after_answer(Status::Submitted, remote.poll_after_seconds, &self.road.limits)
            .unwrap_or_else(|| self.road.limits.poll_interval())
    }

    /// The session that the task lives in stays open for it.
    fn keep_session(&self, remote: &RemoteTask) {
        let TaskIntent { task, server, scope, is_pinned, .. } = &self.intent;
        let session = self.upstream.session_id().filter(|_| *is_pinned);
        if let Some(pin) = session.as_deref().and_then(Pin::parse) {
            self.road.keep_session(server, scope, *task, &pin, Some(self.first_poll(remote)));
        }
    }

    /// Whether the handle is stored after all; a task that has ended since counts.
    async fn is_on_record(&self) -> bool {
        let read = self.road.store.read_task(self.intent.task, Some(self.intent.scope.clone()));
        let read = timeout(COMPENSATION, read).await;
        read.is_ok_and(|read| read.is_ok_and(|task| task.is_some_and(|task| task.snapshot.status != Status::Unknown)))
    }

    /// Tells the remote once to end what it accepted. The first error stays the one that the caller hears; a commit
    /// that did land converges by polling.
    async fn cancel(&self, remote: &RemoteTask) {
        cancel_at_remote(&self.road, &*self.driver, &self.intent, remote).await;
    }

    /// An intent that cannot be taken back is found by the poller when its claim expires, and marked unknown.
    async fn withdraw(&self) {
        let withdrawn = timeout(COMPENSATION, self.road.store.withdraw(self.claim.clone())).await;
        self.told("withdrawn", withdrawn.ok());
    }

    async fn mark_unknown(&self, why: &str) {
        let change = self.change(Snapshot::ended(Status::Unknown, why));
        let marked = timeout(COMPENSATION, self.road.store.mark_unknown(self.claim.clone(), change)).await;
        self.told("marked unknown", marked.ok());
    }

    fn told(&self, what: &str, settled: Option<Result<Settled, caribou_ports::store::StoreError>>) {
        let task = self.intent.task;
        match settled {
            Some(Ok(_)) => {}
            Some(Err(error)) => tracing::warn!(%task, "the intent of a task is not {what} yet: {error}"),
            None => tracing::warn!(%task, "the intent of a task is not {what} yet: the store does not answer"),
        }
    }

    fn change(&self, snapshot: Snapshot) -> Change {
        let TaskIntent { task, task_name, .. } = &self.intent;
        let facts = Facts { task_id: *task, task_name, snapshot: &snapshot, degraded_by: None };
        let event = event(Status::Intended, None, &facts);
        Change { snapshot, event, sinks: self.road.sinks() }
    }
}

/// Tells the remote once to end what it accepted and what is not stored.
pub(super) async fn cancel_at_remote(
    road: &TaskRoad,
    driver: &dyn TaskDriver,
    intent: &TaskIntent,
    remote: &RemoteTask,
) {
    let TaskIntent { task, server, scope, run_id, task_name, .. } = intent;
    let Ok(_place) = road.compensations.try_acquire() else {
        tracing::warn!(%task, %server, "a task that could not be stored is not cancelled: too many are already");
        return;
    };
    let only_at = (intent.driver != ORDINARY).then_some(intent.snapshot);
    let about = About { task: *task, server, scope, run_id: run_id.as_deref(), only: None, only_at };
    let RemoteTask { remote_id, driver_data, .. } = remote;
    let handle = TaskHandle { task: *task, task_name, remote_id, driver_data };
    let cancelled = async {
        let upstream = road.upstream(about).await?;
        driver.cancel(&*upstream, handle).await
    };
    match timeout(road.limits.call_timeout(), cancelled).await {
        Ok(Ok(_)) => tracing::info!(%task, %server, "a task that could not be stored was cancelled at its server"),
        Ok(Err(error)) => tracing::warn!(%task, %server, "a task that could not be stored goes on: {error}"),
        Err(_) => tracing::warn!(%task, %server, "a task that could not be stored goes on: no answer in time"),
    }
}

/// The caller stopped waiting.
const GONE: &str = "the caller went away before the task was on record";

/// Names one submit.
pub(crate) fn submit_key() -> Result<SubmitKey, VerbError> {
    random().map(SubmitKey)
}

/// Sixteen bytes that nobody guesses.
pub(crate) fn random() -> Result<[u8; 16], VerbError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| VerbError::new(Code::Unavailable, format!("this machine gives no random numbers: {error}")))?;
    Ok(bytes)
}
