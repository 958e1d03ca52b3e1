//! One connection to a replica after another, each made when it is needed.

use std::time::Duration;

use caribou_ports::peers::{PeerAddress, PeerError};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::options::PeerOptions;

/// How long connecting may take, until it is known who is there (durability.md §6).
const CONNECT: Duration = Duration::from_secs(1);

/// The connection of the moment.
#[derive(Default)]
pub(super) struct Line {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    connection: Option<Connection>,
    failed: Option<(Instant, PeerError)>,
}

impl Line {
    /// The connection, made if there is none. All who ask meanwhile share the attempt, so nobody waits longer than for
    /// one that is under way and one more.
    ///
    /// # Errors
    /// Nobody answers in time, or somebody else does.
    pub(super) async fn connection(
        &self,
        peer: &PeerAddress,
        options: &PeerOptions,
        given_up: &CancellationToken,
    ) -> Result<Connection, PeerError> {
        let asked = Instant::now();
        let mut held = self.held.lock().await;
        if let Some(connection) = held.connection.as_ref().filter(|connection| !connection.is_lost()) {
            return Ok(connection.clone());
        }
        if let Some((_, why)) = held.failed.as_ref().filter(|(at, _)| *at >= asked) {
            return Err(why.clone());
        }
        held.connection = None;
        let opened = tokio::select! {
            opened = timeout(CONNECT, Connection::open(peer, options, given_up)) => opened.unwrap_or_else(|_| {
                Err(PeerError::Unreachable(format!("{} ({}) did not answer in time", peer.boot, peer.address)))
            }),
            () = given_up.cancelled() => Err(PeerError::Unreachable(format!("{} takes no part any more", peer.boot))),
        };
        match opened {
            Ok(connection) => {
                held.connection = Some(connection.clone());
                Ok(connection)
            }
            Err(why) => {
                held.failed = Some((Instant::now(), why.clone()));
                Err(why)
            }
        }
    }
}
