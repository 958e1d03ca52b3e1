//! Requests of a member over one connection, without tasks of their own.
//!
//! Whoever waits for an answer also sends what is left of the question, so that a request wakes nobody but its connection:
//! wakes are most of what a call at another replica costs.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use caribou_trace::TraceContext;
use futures::future::{Either, select};
use h2::client::SendRequest;
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response};
use hyper::body::{Body as _, Frame};
use tonic::Status;
use tonic::body::Body;
use tower::Service;
use tracing::Span;

use crate::peer::{Membership, status};

/// Sends requests over one connection.
#[derive(Clone)]
pub(super) struct Sender {
    requests: SendRequest<Bytes>,
    membership: Membership,
}

impl Sender {
    /// Over `requests`, as a member.
    pub(super) fn new(requests: SendRequest<Bytes>, membership: Membership) -> Self {
        Self { requests, membership }
    }
}

impl Service<Request<Body>> for Sender {
    type Response = Response<Answer>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Status>> + Send>>;

    /// Always: what cannot be sent is told when it is tried, by a status that says so.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        self.membership.show(request.headers_mut());
        if let Some(context) = TraceContext::within(&Span::current()) {
            context.put_into(request.headers_mut());
        }
        let requests = self.requests.clone();
        Box::pin(async move {
            let mut requests = requests.ready().await.map_err(status::never_sent)?;
            let (head, body) = request.into_parts();
            let is_whole = body.is_end_stream();
            let sent = requests.send_request(Request::from_parts(head, ()), is_whole);
            let (answered, to) = sent.map_err(status::never_sent)?;
            let question = (!is_whole).then_some(Question { body, to, is_begun: false });
            let (answered, question) = match question {
                None => (answered.await, None),
                Some(question) => match select(question, answered).await {
                    // It may have been answered before all of it was heard, or refused: the answer says which.
                    Either::Left(((), answered)) => (answered.await, None),
                    Either::Right((answered, question)) => (answered, Some(question)),
                },
            };
            let answered = answered.map_err(|error| unanswered(&error))?;
            Ok(answered.map(|answer| Answer { answer, question }))
        })
    }
}

/// What a stream that ended without an answer says of its request (RFC 9113 §8.7).
fn unanswered(error: &h2::Error) -> Status {
    match error.reason() {
        Some(Reason::REFUSED_STREAM) => status::never_sent("the other replica did not look at the request"),
        _ => Status::unavailable(error.to_string()),
    }
}

/// A request's messages on their way. Resolves when all are sent, or nobody wants them any more.
struct Question {
    body: Body,
    to: SendStream<Bytes>,
    /// Whether something of it was sent.
    is_begun: bool,
}

impl Future for Question {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { body, to, is_begun } = &mut *self;
        loop {
            // What comes first leaves together with the headers, so that it wakes the other replica once. Each message after
            // it is asked for when there is room for its beginning. The library keeps what finds no room.
            if *is_begun {
                to.reserve_capacity(1);
                while to.capacity() == 0 {
                    match ready!(to.poll_capacity(context)) {
                        Some(Ok(_)) => {}
                        Some(Err(_)) | None => return Poll::Ready(()),
                    }
                }
            }
            let frame = ready!(Pin::new(&mut *body).poll_frame(context));
            let is_last = frame.is_none() || body.is_end_stream();
            *is_begun = true;
            let sent = match frame {
                None => to.send_data(Bytes::new(), true),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => to.send_data(data, is_last),
                    // A request has no trailers.
                    Err(_) => continue,
                },
                Some(Err(_)) => {
                    to.send_reset(Reason::INTERNAL_ERROR);
                    return Poll::Ready(());
                }
            };
            if sent.is_err() || is_last {
                return Poll::Ready(());
            }
        }
    }
}

/// An answer on its way. Dropped, the request is over.
pub(super) struct Answer {
    answer: RecvStream,
    /// What is left of the request.
    question: Option<Question>,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let Self { answer, question } = &mut *self;
        if let Some(asking) = question
            && Pin::new(asking).poll(context).is_ready()
        {
            *question = None;
        }
        if let Some(data) = ready!(answer.poll_data(context)) {
            let taken = data.and_then(|data| answer.flow_control().release_capacity(data.len()).map(|()| data));
            return Poll::Ready(Some(taken.map(Frame::data)));
        }
        let trailers = ready!(answer.poll_trailers(context));
        Poll::Ready(trailers.transpose().map(|trailers| trailers.map(Frame::trailers)))
    }

    fn is_end_stream(&self) -> bool {
        self.answer.is_end_stream()
    }
}
