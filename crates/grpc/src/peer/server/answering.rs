//! What goes down to the replica that asked: progress as it comes, then the answer.
//!
//! A caller gives a request up by saying so. A stream that just ends is a lost connection: the request goes on without
//! it for a while.

use std::pin::Pin;

use caribou_ports::mcp::CallError;
use caribou_ports::peers::PeerAnswer;
use caribou_proto::peer::v1;
use caribou_proto::peer::v1::{down, end, up};
use futures::{Stream, StreamExt as _, stream};
use tonic::{Status, Streaming};

use super::owner::{Happened, Running};
use crate::peer::convert;
use crate::peer::parts::Parting;

/// What goes down.
pub(super) type Downs = Pin<Box<dyn Stream<Item = Result<v1::Down, Status>> + Send>>;

/// All that happens to a request that runs, once there is something: an answer that is there goes out together with its
/// headers, which wakes the other replica once rather than twice.
pub(super) async fn downs(running: Box<dyn Running>, ups: Streaming<v1::Up>) -> Downs {
    let asking = Asking { running, ups, is_open: true };
    let mut downs = Box::pin(stream::unfold(Some(Stage::Runs(asking)), |stage| async move {
        let (down, stage) = match stage? {
            Stage::Runs(asking) => asking.next().await?,
            Stage::Parts(parting) => next_part(parting),
        };
        Some((Ok(down), stage))
    }))
    .peekable();
    Pin::new(&mut downs).peek().await;
    Box::pin(downs)
}

/// Only why a request does not run.
pub(super) fn refused(failed: v1::Failed) -> Downs {
    Box::pin(stream::iter([Ok(end(end::How::Failed(failed)))]))
}

/// How far an answer has come.
enum Stage {
    Runs(Asking),
    Parts(Parting),
}

struct Asking {
    running: Box<dyn Running>,
    ups: Streaming<v1::Up>,
    /// Whether the caller may still say something.
    is_open: bool,
}

impl Asking {
    /// The next message and what comes after it; `None` = nobody is there to hear it.
    async fn next(mut self) -> Option<(v1::Down, Option<Stage>)> {
        loop {
            tokio::select! {
                happened = self.running.next() => return Some(match happened {
                    Happened::Progress(progress) => (convert::report(&progress), Some(Stage::Runs(self))),
                    Happened::Answered(answer) => last(answer),
                }),
                said = self.ups.message(), if self.is_open => match said {
                    Ok(Some(v1::Up { what: Some(up::What::Cancel(_)) })) => {
                        self.running.cancel();
                        return None;
                    }
                    // It cannot ask for something else, and may say what we have no word for.
                    Ok(Some(_)) => {}
                    Ok(None) => self.is_open = false,
                    // The connection is lost.
                    Err(_) => return None,
                },
            }
        }
    }
}

fn last(answer: Result<PeerAnswer, CallError>) -> (v1::Down, Option<Stage>) {
    let how = match answer {
        Ok(PeerAnswer::Result(result)) => match Parting::begin(result) {
            Ok(parting) => return next_part(parting),
            Err(short) => end::How::Done(convert::done(PeerAnswer::Result(short))),
        },
        Ok(answer) => end::How::Done(convert::done(answer)),
        Err(error) => end::How::Failed(convert::failed(error)),
    };
    (end(how), None)
}

fn next_part(mut parting: Parting) -> (v1::Down, Option<Stage>) {
    match parting.next() {
        Ok(part) => (v1::Down { what: Some(down::What::Part(part)) }, Some(Stage::Parts(parting))),
        Err(done) => (end(end::How::Done(done)), None),
    }
}

fn end(how: end::How) -> v1::Down {
    v1::Down { what: Some(down::What::End(v1::End { how: Some(how) })) }
}
