//! One call answered as a stream: what its server reports while it runs, the result or the status last.
//!
//! The stream owns the call: a caller that goes away drops the stream, hence the call, hence cancels it upstream. The
//! call is a task of its own, so that its bounds hold also when a caller stops reading. Reports queue up to a bound and
//! are dropped beyond it (B1); none follows the end.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use caribou_core::bounds::PROGRESS_QUEUE;
use caribou_proto::v1;
use caribou_proto::v1::call_tool_event::Event;
use caribou_runtime::{CallTool, Runtime};
use futures::{FutureExt, Stream, future, stream};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use tracing::{Instrument as _, Span};

use crate::{convert, status};

/// What is told about one call.
pub(super) type Events = Pin<Box<dyn Stream<Item = Result<v1::CallToolEvent, Status>> + Send>>;

/// Runs `call` and tells everything about it.
pub(super) fn run(runtime: Runtime, mut call: CallTool) -> Events {
    let (reports, mut queue) = mpsc::channel(PROGRESS_QUEUE);
    call.progress = Some(Arc::new(move |report| {
        // A full queue drops the report: progress is a courtesy, and the session must not wait for a slow caller.
        let _ = reports.try_send(report);
    }));
    // The stream is read after the request has been answered.
    let span = Span::current();
    let mut last = Box::pin(future::maybe_done(last_event(runtime, call).instrument(span)));
    let mut ended = false;
    Box::pin(stream::poll_fn(move |context| {
        if ended {
            return Poll::Ready(None);
        }
        let answered = last.as_mut().poll_unpin(context).is_ready();
        match queue.poll_recv(context) {
            Poll::Ready(Some(report)) => Poll::Ready(Some(Ok(convert::reported(&report)))),
            _ if answered => {
                ended = true;
                Poll::Ready(last.as_mut().take_output())
            }
            _ => Poll::Pending,
        }
    }))
}

async fn last_event(runtime: Runtime, call: CallTool) -> Result<v1::CallToolEvent, Status> {
    let id = call.request_id.clone();
    let task = AbortOnDropHandle::new(tokio::spawn(async move { runtime.call_tool(call).await }.in_current_span()));
    match task.await {
        Ok(Ok(called)) => Ok(v1::CallToolEvent { event: Some(Event::Result(convert::called(&called, &id))) }),
        Ok(Err(error)) => Err(status::of(error)),
        Err(_) => Err(status::panicked(&id)),
    }
}
