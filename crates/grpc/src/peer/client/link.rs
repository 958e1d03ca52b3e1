//! All that leads to one life of another replica.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::ids::{Scope, ServerName};
use caribou_ports::peers::{ClientSays, ClientWord, Nudge, PeerAddress, PeerError};
use caribou_proto::peer::v1;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::line::Line;
use super::options::PeerOptions;
use crate::peer::server::MAX_STREAMS;
use crate::peer::{convert, status};

/// How long a replica may take to close sessions: their own bound twice, and the way.
const CLOSE: Duration = caribou_core::bounds::SESSION_CLOSE.saturating_mul(2).saturating_add(Duration::from_secs(2));

/// How long a hint may take.
const NUDGE: Duration = Duration::from_secs(1);

/// How long a message to a client may take to the replica that holds its stream: the largest answer over a slow network.
const TELL: Duration = Duration::from_secs(15);

/// Hints under way at once: more say nothing new.
const MAX_NUDGES: usize = 4;

/// The way to one life of another replica. Two connections: long answers must not delay what is short and urgent.
pub(super) struct Link {
    pub(super) peer: PeerAddress,
    pub(super) options: Arc<PeerOptions>,
    calls: Line,
    control: Line,
    /// One place for each request that its connection carries at once, so that none waits for a stream.
    pub(super) room: Arc<Semaphore>,
    nudges: Arc<Semaphore>,
    /// Set when the life takes no part any more.
    pub(super) given_up: CancellationToken,
}

impl Link {
    /// To `peer`; connects to nobody yet.
    pub(super) fn to(peer: PeerAddress, options: Arc<PeerOptions>) -> Self {
        Self {
            peer,
            options,
            calls: Line::default(),
            control: Line::default(),
            room: Arc::new(Semaphore::new(MAX_STREAMS as usize)),
            nudges: Arc::new(Semaphore::new(MAX_NUDGES)),
            given_up: CancellationToken::new(),
        }
    }

    /// What requests in sessions go over.
    pub(super) async fn calls(&self) -> Result<Connection, PeerError> {
        self.calls.connection(&self.peer, &self.options, &self.given_up).await
    }

    /// What everything else goes over.
    pub(super) async fn control(&self) -> Result<Connection, PeerError> {
        self.control.connection(&self.peer, &self.options, &self.given_up).await
    }

    /// Has it close sessions.
    pub(super) async fn close_sessions(&self, scope: Scope, server: Option<ServerName>) -> Result<u64, PeerError> {
        let closing = async {
            let request = v1::CloseSessionsRequest {
                to_boot: self.peer.boot.to_string(),
                user: scope.user.to_string(),
                thread: scope.thread.to_string(),
                server: server.map(|server| server.to_string()).unwrap_or_default(),
            };
            let closed = self.control().await?.client().close_sessions(request).await;
            closed.map(|closed| closed.into_inner().closed).map_err(|status| status::peer_error(&status))
        };
        let late = |_| PeerError::Unreachable(format!("{} did not close sessions in time", self.peer.boot));
        timeout(CLOSE, closing).await.map_err(late)?
    }

    /// Passes on what a client said or is told; whether that was waited for.
    pub(super) async fn tell(&self, word: ClientWord) -> Result<bool, PeerError> {
        // As long as the answer to a call, so it goes the way of those.
        let is_long = matches!(word.says, ClientSays::Told(_));
        let told = async {
            let request = convert::hear_request(&self.peer.boot, word);
            let (_place, connection) = match is_long {
                true => (self.room.acquire().await.ok(), self.calls().await?),
                false => (None, self.control().await?),
            };
            let heard = connection.client().hear(request).await;
            heard.map(|heard| heard.into_inner().heard).map_err(|status| status::peer_error(&status))
        };
        let late = |_| PeerError::Unreachable(format!("{} did not hear a client in time", self.peer.boot));
        timeout(if is_long { TELL } else { NUDGE }, told).await.map_err(late)?
    }

    /// Gives it a hint, if there is room for one.
    pub(super) fn nudge(self: &Arc<Self>, about: Nudge) {
        let (Ok(place), Ok(runtime)) = (self.nudges.clone().try_acquire_owned(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let link = self.clone();
        runtime.spawn(async move {
            let request = v1::NudgeRequest { to_boot: link.peer.boot.to_string(), ..convert::nudge(about) };
            let told = async {
                let mut client = link.control().await?.client();
                client.nudge(request).await.map_err(|status| status::peer_error(&status))
            };
            if let Ok(Err(error)) = timeout(NUDGE, told).await {
                tracing::debug!(peer = %link.peer.boot, "a hint was lost: {error}");
            }
            drop(place);
        });
    }
}
