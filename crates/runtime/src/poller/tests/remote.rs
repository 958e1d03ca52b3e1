//! A remote with tasks, as one server and as the driver that speaks to it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_core::config::ServerConfig;
use caribou_core::failure::Code;
use caribou_core::ids::Epoch;
use caribou_core::task::parse::Misread;
use caribou_core::task::{Pin, Report, Status, TaskId};
use caribou_ports::BoxFuture;
use caribou_ports::mcp::TaskQuestion;
use caribou_ports::store::{ClaimedTask, NewAnswer};
use caribou_ports::task_driver::{DriverError, RemoteError, SubmitTask, Submitted, TaskDriver, TaskHandle, Upstream};
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

use crate::poller::Road;

/// What the remote says to one poll.
#[derive(Clone, Copy, Debug)]
pub(super) enum Said {
    Is(Status),
    /// Nothing, with this code.
    Error(Code),
    /// Something that breaks the contract.
    Nonsense,
    /// A failure of the tool.
    Failure,
    /// Nothing: whoever speaks to the remote has no word for it.
    Unsupported,
    /// Nothing: the session that it was asked in ended meanwhile.
    SessionEnds,
    /// The answer comes only after so long.
    After(Duration, Status),
    /// That it does not know the task.
    Unknown,
    /// Whoever asks breaks down.
    Kills,
}

/// One task at the remote.
#[derive(Default)]
pub(super) struct Job {
    /// What it says to the next polls; the last one stays.
    pub(super) says: VecDeque<Said>,
    pub(super) polled: Vec<Instant>,
    pub(super) cancels: usize,
    pub(super) is_cancelling: bool,
    pub(super) overlaps: usize,
    pub(super) answers: Vec<String>,
}

/// The remote. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Remote {
    pub(super) jobs: Arc<Mutex<BTreeMap<String, Job>>>,
    /// The epoch of the session that is open, in the eyes of every replica.
    pub(super) open: Arc<Mutex<Option<Epoch>>>,
    /// The session that is opened for whoever asks in no session of its own.
    pub(super) anew: Arc<Mutex<Option<Pin>>>,
    /// For how long the session of each task was last kept.
    pub(super) kept: Arc<Mutex<BTreeMap<TaskId, Option<Duration>>>>,
    /// How long a cancel takes.
    pub(super) cancel_takes: Duration,
    /// How a cancel ends.
    pub(super) cancel_ends: Option<Status>,
}

impl Remote {
    pub(super) fn job<T>(&self, remote_id: &str, look: impl FnOnce(&mut Job) -> T) -> T {
        look(self.jobs.lock().unwrap_or_else(PoisonError::into_inner).entry(remote_id.to_owned()).or_default())
    }

    pub(super) fn says(&self, remote_id: &str, says: impl IntoIterator<Item = Said>) {
        self.job(remote_id, |job| job.says = says.into_iter().collect());
    }

    pub(super) fn polls(&self) -> usize {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).values().map(|job| job.polled.len()).sum()
    }
}

/// Marks a cancel as over however it ends.
struct Cancelling(Remote, String);

impl Drop for Cancelling {
    fn drop(&mut self) {
        self.0.job(&self.1, |job| job.is_cancelling = false);
    }
}

impl TaskDriver for Remote {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn submit<'a>(&'a self, _: &'a dyn Upstream, _: SubmitTask<'a>) -> BoxFuture<'a, Result<Submitted, DriverError>> {
        Box::pin(async { Err(DriverError::NotSupported("nobody submits here".to_owned())) })
    }

    fn status<'a>(&'a self, _: &'a dyn Upstream, task: TaskHandle<'a>) -> BoxFuture<'a, Result<Report, DriverError>> {
        let said = self.job(task.remote_id, |job| {
            job.polled.push(Instant::now());
            let said = job.says.front().copied().unwrap_or(Said::Is(Status::Working));
            if job.says.len() > 1 {
                job.says.pop_front();
            }
            said
        });
        Box::pin(async move {
            match said {
                Said::Is(status) => Ok(report(status)),
                Said::Error(code) => Err(RemoteError::new(code, "the remote does not answer").into()),
                Said::Nonsense => Err(Misread::Protocol("nonsense".to_owned()).into()),
                Said::Failure => Err(Misread::ToolFailed("out of order".to_owned()).into()),
                Said::Unsupported => Err(DriverError::NotSupported("there is no such toolset any more".to_owned())),
                Said::SessionEnds => {
                    *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    Err(RemoteError::new(Code::OutcomeUnknown, "connection closed").into())
                }
                Said::After(wait, status) => {
                    sleep(wait).await;
                    Ok(report(status))
                }
                Said::Unknown => Ok(Report { is_unknown: true, ..report(Status::Failed) }),
                Said::Kills => panic!("the task kills its worker"),
            }
        })
    }

    fn cancel<'a>(&'a self, _: &'a dyn Upstream, task: TaskHandle<'a>) -> BoxFuture<'a, Result<Report, DriverError>> {
        self.job(task.remote_id, |job| {
            job.cancels += 1;
            job.overlaps += usize::from(job.is_cancelling);
            job.is_cancelling = true;
        });
        let cancelling = Cancelling(self.clone(), task.remote_id.to_owned());
        Box::pin(async move {
            sleep(self.cancel_takes).await;
            drop(cancelling);
            match self.cancel_ends {
                Some(status) => Ok(Report::of(status)),
                None => Err(RemoteError::new(Code::Unavailable, "the remote does not answer").into()),
            }
        })
    }

    fn answer<'a>(
        &'a self,
        _: &'a dyn Upstream,
        task: TaskHandle<'a>,
        answers: &'a [NewAnswer],
    ) -> BoxFuture<'a, Result<(), DriverError>> {
        self.job(task.remote_id, |job| {
            job.answers.extend(answers.iter().map(|answer| answer.input_id.clone()));
            job.says = [Said::Is(Status::Completed)].into();
        });
        Box::pin(async { Ok(()) })
    }
}

fn report(status: Status) -> Report {
    let asks = (status == Status::InputRequired).then(|| RawValue::from_string(r#"{"q":1}"#.to_owned()).unwrap());
    Report { input_required: asks, ..Report::of(status) }
}

/// The driver needs no way to the server, but the session at its end.
struct NoWay(Option<Pin>);

impl Upstream for NoWay {
    fn call_tool(
        &self,
        _: &str,
        _: Option<Box<RawValue>>,
        _: Option<Box<RawValue>>,
    ) -> BoxFuture<'_, Result<Box<RawValue>, RemoteError>> {
        unreachable!("the remote is asked directly")
    }

    fn request(&self, _: &'static str, _: Box<RawValue>) -> BoxFuture<'_, Result<Box<RawValue>, RemoteError>> {
        unreachable!("the remote is asked directly")
    }

    fn task_questions(&self, _: &str) -> BoxFuture<'_, Result<Vec<TaskQuestion>, RemoteError>> {
        unreachable!("the remote is asked directly")
    }

    fn answer_task(&self, _: &str, _: &str, _: Box<RawValue>) -> BoxFuture<'_, Result<bool, RemoteError>> {
        unreachable!("the remote is asked directly")
    }

    fn server(&self) -> &ServerConfig {
        unreachable!("the remote is asked directly")
    }

    fn session_id(&self) -> Option<String> {
        self.0.as_ref().map(Pin::to_string)
    }
}

impl Road for Remote {
    fn driver(&self, name: &str) -> Option<Arc<dyn TaskDriver>> {
        (name == self.name()).then(|| Arc::new(self.clone()) as Arc<dyn TaskDriver>)
    }

    fn upstream<'a>(
        &'a self,
        _: &'a ClaimedTask,
        only: Option<Epoch>,
    ) -> BoxFuture<'a, Result<Box<dyn Upstream>, RemoteError>> {
        let anew = self.anew.lock().unwrap_or_else(PoisonError::into_inner).clone().filter(|_| only.is_none());
        if let Some(pin) = &anew {
            *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(pin.epoch);
        }
        Box::pin(async { Ok(Box::new(NoWay(anew)) as Box<dyn Upstream>) })
    }

    fn open_session(&self, _: &ClaimedTask) -> Option<Epoch> {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep_session(&self, task: &ClaimedTask, next: Option<Duration>) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(task.claim.task, next);
    }
}
