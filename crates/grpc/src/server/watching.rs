//! One watcher: its events as a stream, its acknowledgements as another (contract 6.9; invariant N1).
//!
//! Acknowledgements are read by a task of their own, so that a watcher which does not read on is still heard. The stream
//! ends when the watcher ends its own, says something that means nothing, or is let go: by age or because the replica
//! stops. Then it is told nothing more and has a while to acknowledge what it has. Whatever is not acknowledged at the
//! end is told again, to whoever watches then.

use std::pin::Pin;

use caribou_core::bounds::{TASK_STREAM_AGE, TASK_WATCH_LEAVE};
use caribou_core::ids::RequestId;
use caribou_proto::v1;
use caribou_proto::v1::watch_tasks::Request as Asked;
use caribou_runtime::{TaskAnswers, TaskWatch};
use futures::{Stream, stream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;
use tonic::{Status, Streaming};

use crate::{convert, status};

/// What a watcher is told.
pub(super) type Events = Pin<Box<dyn Stream<Item = Result<v1::TaskEvent, Status>> + Send>>;

/// Tells `watch` all that it is asked, and hears what it says to that.
pub(super) fn events(
    watch: TaskWatch,
    said: Streaming<v1::WatchTasks>,
    stopped: watch::Receiver<()>,
    id: RequestId,
) -> Events {
    let heard = AbortOnDropHandle::new(tokio::spawn(hear(said, watch.answers())));
    let until = Instant::now() + TASK_STREAM_AGE;
    let watching = Watching { watch, heard, stopped, id, until, is_leaving: false, is_over: false };
    Box::pin(stream::unfold(watching, |mut watching| async move {
        let event = watching.next().await?;
        Some((event, watching))
    }))
}

struct Watching {
    watch: TaskWatch,
    heard: AbortOnDropHandle<Result<(), Status>>,
    stopped: watch::Receiver<()>,
    id: RequestId,
    /// When it is let go; once it is, when it ends whatever it has.
    until: Instant,
    is_leaving: bool,
    is_over: bool,
}

impl Watching {
    async fn next(&mut self) -> Option<Result<v1::TaskEvent, Status>> {
        while !self.is_over {
            tokio::select! {
                event = self.watch.next() => match event {
                    Some(event) => return Some(Ok(convert::watched(event))),
                    None => self.is_over = true,
                },
                heard = &mut self.heard => {
                    self.is_over = true;
                    return match heard {
                        Ok(ended) => ended.err().map(Err),
                        Err(_) => Some(Err(status::panicked(&self.id))),
                    };
                }
                () = sleep_until(self.until) => match self.is_leaving {
                    true => self.is_over = true,
                    false => self.let_go(),
                },
                _ = self.stopped.changed(), if !self.is_leaving => self.let_go(),
            }
        }
        None
    }

    fn let_go(&mut self) {
        self.watch.leave();
        self.is_leaving = true;
        self.until = Instant::now() + TASK_WATCH_LEAVE;
    }
}

/// Takes every acknowledgement, until the watcher ends its side.
async fn hear(mut said: Streaming<v1::WatchTasks>, answers: TaskAnswers) -> Result<(), Status> {
    while let Some(message) = said.message().await? {
        match message.request {
            Some(Asked::Ack(ack)) => {
                let (key, answer) = convert::acknowledged(ack)?;
                answers.answer(&key, answer);
            }
            Some(Asked::Subscribe(_)) => return Err(status::invalid("`subscribe` comes first, and once")),
            None => return Err(status::invalid("a message after the first must be `ack`")),
        }
    }
    Ok(())
}
