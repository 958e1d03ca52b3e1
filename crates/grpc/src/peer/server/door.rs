//! The listener that other replicas reach this one by.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use caribou_proto::peer::v1::session_service_server::SessionServiceServer;
use futures::future::Either;
use http::{Request, Response};
use tokio::net::TcpListener;
use tonic::body::Body;
use tower::Service;

use super::owner::Owner;
use super::sessions::{LARGEST_MESSAGE, Sessions};
use crate::peer::{Membership, SIGNS_OF_LIFE, status};
use crate::serve::{Door, ServerConfigs, serve_by};

/// Requests at once on one connection of a replica. As many as it sends: more are refused where they come from.
pub(in crate::peer) const MAX_STREAMS: u32 = 256;

/// How long one message may take to arrive, between neighbours.
const PATIENCE: Duration = Duration::from_secs(10);

/// How the listener of replicas is guarded.
#[derive(Clone)]
pub struct PeerDoor {
    /// What whoever asks must show.
    pub membership: Membership,
    /// How connections are encrypted, and whose certificates are believed; `None` = they are not.
    pub tls: Option<ServerConfigs>,
}

/// Serves the sessions of `owner` to the other replicas on `listener` until `shutdown` resolves, then lets requests in
/// flight finish for at most `drain`.
///
/// Dropping the future cuts every connection at once.
///
/// # Errors
/// The socket is not a listening one. Failures of single connections are logged and end only those.
pub async fn serve_peers(
    listener: TcpListener,
    door: PeerDoor,
    owner: Arc<dyn Owner>,
    shutdown: impl Future<Output = ()>,
    drain: Duration,
) -> io::Result<()> {
    let PeerDoor { membership, tls } = door;
    let sessions = SessionServiceServer::new(Sessions { owner })
        .max_decoding_message_size(LARGEST_MESSAGE)
        .max_encoding_message_size(LARGEST_MESSAGE);
    let guarded = Guarded { sessions, membership };
    let (patience, signs_of_life) = (PATIENCE, SIGNS_OF_LIFE);
    let door = Door { tls, patience, signs_of_life, max_streams: MAX_STREAMS, is_public: false };
    serve_by(listener, door, |_| guarded, shutdown, drain).await
}

/// The sessions, for members only. There is nothing else at this door, so nothing is routed.
#[derive(Clone)]
struct Guarded {
    sessions: SessionServiceServer<Sessions>,
    membership: Membership,
}

impl<B> Service<Request<B>> for Guarded
where
    SessionServiceServer<Sessions>: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<
        <SessionServiceServer<Sessions> as Service<Request<B>>>::Future,
        Ready<Result<Response<Body>, Infallible>>,
    >;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.sessions.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match self.membership.admits(request.headers()) {
            true => Either::Left(self.sessions.call(request)),
            false => Either::Right(ready(Ok(status::stranger().into_http()))),
        }
    }
}
