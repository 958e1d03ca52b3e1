//! A request's message on its way in, waited for only so long (B1).
//!
//! Keep-alives show that a caller lives, not that it goes on sending: without this a message that never ends would
//! hold its stream for ever.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use caribou_core::failure::Code;
use caribou_runtime::VerbError;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use crate::status;

/// A body that must have ended some time after it first kept somebody waiting.
pub(crate) struct Patient<B> {
    body: B,
    /// `None` = it may take as long as it likes.
    patience: Option<Duration>,
    /// Set when the first frame is waited for.
    late: Option<Pin<Box<Sleep>>>,
}

impl<B> Patient<B> {
    /// Waits for `body` for at most `patience`; `None` = as long as it takes.
    pub(crate) fn new(body: B, patience: Option<Duration>) -> Self {
        Self { body, patience, late: None }
    }
}

impl<B> Body for Patient<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Error + Send + Sync + 'static,
{
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Self { body, patience, late } = &mut *self;
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let Some(patience) = patience else { return Poll::Pending };
        let late = late.get_or_insert_with(|| Box::pin(tokio::time::sleep(*patience)));
        ready!(late.as_mut().poll(context));
        let detail = format!("the message did not arrive within {} s", patience.as_secs_f64());
        Poll::Ready(Some(Err(status::of(VerbError::new(Code::Timeout, detail)).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::poll_fn;

    use super::*;

    /// A body that sends `frames` bytes and then nothing, without an end.
    struct Endless {
        frames: usize,
    }

    impl Body for Endless {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.frames == 0 {
                return Poll::Pending;
            }
            self.frames -= 1;
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_conversation_may_be_silent_for_hours() {
        let mut body = Patient::new(Endless { frames: 0 }, None);
        let silence = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        assert!(tokio::time::timeout(Duration::from_secs(10_000), silence).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_never_ends_is_given_up() {
        let began = tokio::time::Instant::now();
        let mut body = Patient::new(Endless { frames: 2 }, Some(Duration::from_secs(30)));
        let mut next = async || poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        assert!(next().await.unwrap().is_ok() && next().await.unwrap().is_ok());
        assert_eq!(began.elapsed(), Duration::ZERO);
        let given_up = next().await.unwrap().err().unwrap();
        let status = given_up.downcast_ref::<tonic::Status>().unwrap();
        assert_eq!((status.code(), began.elapsed()), (tonic::Code::DeadlineExceeded, Duration::from_secs(30)));
    }
}
