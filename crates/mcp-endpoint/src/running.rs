//! The work of one request under way.
//!
//! It is done by whoever waits for it: a task of its own would have to be woken, and to wake, with each call. It gets one
//! when it may not depend on that any more: when its client has left and it goes on, or when its answer has begun, which
//! is written only as fast as the client reads.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};

use caribou_core::ids::RequestId;
use futures::FutureExt as _;
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};

use crate::fault::Fault;

/// What became of a request; `None` = its client cancelled it and waits for nothing.
pub(crate) type Outcome = Option<Result<String, Fault>>;

/// A request under way. Resolves once.
pub(crate) struct Running {
    work: Doing,
    request_id: RequestId,
    ends_with_its_client: bool,
}

enum Doing {
    Here(Pin<Box<dyn Future<Output = Outcome> + Send>>),
    Apart(JoinHandle<Outcome>),
    Done,
}

impl Running {
    /// Begins `work` when it is first waited for. Dropped before its end, it is given up, unless it does not end with its
    /// client.
    pub(crate) fn new(
        work: impl Future<Output = Outcome> + Send + 'static,
        request_id: RequestId,
        ends_with_its_client: bool,
    ) -> Self {
        let named = request_id.clone();
        let survived = AssertUnwindSafe(work).catch_unwind();
        let work = Doing::Here(Box::pin(async move { survived.await.unwrap_or_else(|_| panicked(&named)) }));
        Self { work, request_id, ends_with_its_client }
    }

    /// The same in a task of its own.
    pub(crate) fn apart(mut self) -> Self {
        self.work = match std::mem::replace(&mut self.work, Doing::Done) {
            Doing::Here(work) => Doing::Apart(tokio::spawn(work)),
            other => other,
        };
        self
    }
}

impl Future for Running {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let Self { work, request_id, .. } = &mut *self;
        let done = match work {
            Doing::Here(work) => work.as_mut().poll(context),
            Doing::Apart(task) => Pin::new(task).poll(context).map(|done| settled(done, request_id)),
            Doing::Done => Poll::Pending,
        };
        if done.is_ready() {
            *work = Doing::Done;
        }
        done
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        match (std::mem::replace(&mut self.work, Doing::Done), self.ends_with_its_client) {
            (Doing::Apart(task), true) => task.abort(),
            (Doing::Here(work), false) => {
                if let Ok(runtime) = Handle::try_current() {
                    runtime.spawn(work);
                }
            }
            _ => {}
        }
    }
}

/// A request that meets a panic takes nothing else along.
pub(crate) fn settled(done: Result<Outcome, JoinError>, request_id: &RequestId) -> Outcome {
    done.unwrap_or_else(|_| panicked(request_id))
}

fn panicked(request_id: &RequestId) -> Outcome {
    tracing::error!(%request_id, "a request met a panic");
    Some(Err(Fault::bug()))
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    /// Work that ends when it is told to; whether it was given up can be seen.
    fn work(ends_with_its_client: bool) -> (Running, oneshot::Sender<()>, oneshot::Receiver<()>) {
        let (end, ended) = oneshot::channel::<()>();
        let (done, seen) = oneshot::channel();
        let work = async move {
            ended.await.ok()?;
            done.send(()).ok()?;
            Some(Ok("done".to_owned()))
        };
        (Running::new(work, RequestId::from("r"), ends_with_its_client), end, seen)
    }

    #[tokio::test]
    async fn it_is_done_by_who_waits_and_in_a_task_alike() {
        for is_apart in [false, true] {
            let (running, end, _seen) = work(true);
            let running = if is_apart { running.apart() } else { running };
            end.send(()).unwrap();
            assert_eq!(running.await.unwrap().unwrap(), "done");
        }
    }

    #[tokio::test]
    async fn only_a_request_that_ends_with_its_client_is_given_up_when_that_leaves() {
        for is_apart in [false, true] {
            for ends_with_its_client in [false, true] {
                let (mut running, end, seen) = work(ends_with_its_client);
                assert!(futures::poll!(&mut running).is_pending());
                drop(if is_apart { running.apart() } else { running });
                let goes_on = end.send(()).is_ok() && seen.await.is_ok();
                assert_eq!(goes_on, !ends_with_its_client, "apart: {is_apart}");
            }
        }
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_like_any_other() {
        for is_apart in [false, true] {
            let running = Running::new(async { panic!("told by the hook") }, RequestId::from("r"), true);
            let running = if is_apart { running.apart() } else { running };
            assert!(running.await.unwrap().is_err());
        }
    }
}
