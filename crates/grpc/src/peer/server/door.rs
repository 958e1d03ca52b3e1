//! The listener that other replicas reach this one by.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use caribou_proto::peer::v1::session_service_server::SessionServiceServer;
use tokio::net::TcpListener;
use tonic::service::Routes;
use tonic::service::interceptor::InterceptedService;
use tonic::{Request, Status};

use super::owner::Owner;
use super::sessions::{LARGEST_MESSAGE, Sessions};
use crate::peer::{Membership, SIGNS_OF_LIFE, status};
use crate::serve::{Door, ServerConfigs, serve_routes};

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
    let guarded = InterceptedService::new(sessions, move |request: Request<()>| -> Result<Request<()>, Status> {
        match membership.admits(request.metadata().as_ref()) {
            true => Ok(request),
            false => Err(status::stranger()),
        }
    });
    let door = Door { tls, patience: PATIENCE, signs_of_life: SIGNS_OF_LIFE, max_streams: MAX_STREAMS };
    serve_routes(listener, door, |_| Routes::new(guarded).prepare(), shutdown, drain).await
}
