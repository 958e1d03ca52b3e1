//! The other replicas, as far as sessions go (architecture.md §7, first walk).
//!
//! A session of another replica is a [`Session`] like any other: whoever calls it does not see where it lives. It is asked
//! once and answers for itself; what it refuses was surely not sent to a server. Nothing is sent twice (invariant S2).

use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::Secret;
use caribou_core::failure::Code;
use caribou_core::ids::{BootId, Epoch, Scope, ServerName};
use caribou_core::session::NotTaken;

use crate::BoxFuture;
use crate::mcp::Session;

/// Reaches other replicas.
pub trait Peers: Send + Sync + 'static {
    /// A session that `peer` holds, or opens for this. Resolves once it is live there.
    fn open(&self, peer: Peer, wanted: Wanted) -> BoxFuture<'_, Result<Opened, PeerError>>;

    /// Has `peer` close its sessions of `scope`, of one server if named. How many it closed.
    fn close(&self, peer: Peer, scope: Scope, server: Option<ServerName>) -> BoxFuture<'_, Result<usize, PeerError>>;
}

/// Another replica.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Which life of it: another one at the same address answers for itself only.
    pub boot: BootId,
    /// Where it is reached: `host:port`.
    pub address: String,
}

/// Which session is wanted.
#[derive(Clone)]
pub struct Wanted {
    /// Of which server.
    pub server: ServerName,
    /// Of whom, in which thread.
    pub scope: Scope,
    /// The headers that it is opened with, which name whom it acts for.
    pub headers: Vec<(String, Secret)>,
    /// The epoch that it was found at; `None` = nobody holds it, and the peer is to open it.
    pub epoch: Option<Epoch>,
    /// How long the opening may take.
    pub within: Duration,
}

/// A session of another replica.
pub struct Opened {
    /// The session; it ends by itself as soon as the peer does not hold it at this epoch any more.
    pub session: Arc<dyn Session>,
    /// Its epoch.
    pub epoch: Epoch,
}

/// Why another replica has no session for us.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// It does not take it: look the session up again.
    #[error(transparent)]
    NotTaken(#[from] NotTaken),
    /// It cannot be reached, or did not answer: nobody knows whether it opened anything.
    #[error("replica {boot} cannot be reached: {why}")]
    Unreachable {
        /// Which.
        boot: BootId,
        /// For people; holds no secret.
        why: String,
    },
    /// It could not open the session.
    #[error("{message}")]
    Failed {
        /// The word a caller branches on.
        code: Code,
        /// For people; holds no secret.
        message: String,
    },
}
