//! An owner that is served, and the way to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::Secret;
use caribou_core::ids::{BootId, Epoch, Scope, ServerName, SessionKey};
use caribou_grpc::{Membership, PeerClient, PeerDoor, PeerOptions, serve_peers};
use caribou_ports::mcp::{Session, ToolCall};
use caribou_ports::peers::{OpenedThere, PeerAddress, PeerError, Peers as _, Wanted};
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::owner::{FakeOwner, Served};
use super::proxy::Proxy;

pub(crate) const SOON: Duration = Duration::from_secs(10);

pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef";

pub(crate) fn member() -> Membership {
    Membership::new(Some(&Secret::new(SECRET)))
}

/// A door with an owner behind it; closed at the end of the test.
pub(crate) struct Replica {
    pub(crate) owner: Arc<FakeOwner>,
    pub(crate) address: SocketAddr,
    _stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Replica {
    pub(crate) async fn start(boot: &str, door: PeerDoor) -> Self {
        let owner = FakeOwner::new(boot);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = Arc::new(Served(owner.clone()));
        let serving = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            serve_peers(listener, door, served, stopped, Duration::from_millis(100)).await.unwrap();
        });
        Self { owner, address, _stop: stop, serving }
    }

    /// One that knows its members by the secret.
    pub(crate) async fn plain(boot: &str) -> Self {
        Self::start(boot, PeerDoor { membership: member(), tls: None }).await
    }

    /// As after `kill -9`.
    pub(crate) fn kill(&self) {
        self.serving.abort();
    }
}

pub(crate) fn peer(boot: &str, address: SocketAddr) -> PeerAddress {
    PeerAddress { boot: BootId::from(boot), address: address.to_string() }
}

pub(crate) fn wanted(epoch: Option<u64>) -> Wanted {
    let (server, scope) = (ServerName::from("s"), Scope::new(Some("ann"), Some("t1")));
    Wanted {
        key: SessionKey { server, scope, credential: None },
        headers: vec![("X-Token".to_owned(), Secret::new("hunter2"))],
        epoch: epoch.map(Epoch),
        within: SOON,
    }
}

pub(crate) fn client(membership: Membership) -> PeerClient {
    PeerClient::new(PeerOptions {
        rejoin: Duration::from_millis(700),
        call_max: Duration::from_secs(60),
        ..PeerOptions::new(BootId::from("asker"), membership)
    })
}

/// The session of `boot`, which is reached at `address`.
pub(crate) async fn open(client: &PeerClient, boot: &str, address: SocketAddr) -> Result<Arc<dyn Session>, PeerError> {
    client.open(peer(boot, address), wanted(Some(7))).await.map(|OpenedThere { session, .. }| session)
}

/// An owner, a cable, and the session behind both.
pub(crate) async fn cabled() -> (Replica, Proxy, PeerClient, Arc<dyn Session>) {
    let replica = Replica::plain("b").await;
    let proxy = Proxy::to(replica.address).await;
    let client = client(member());
    let session = open(&client, "b", proxy.address).await.unwrap();
    (replica, proxy, client, session)
}

pub(crate) fn call(name: &str, arguments: Option<&str>) -> ToolCall {
    ToolCall {
        name: name.into(),
        arguments: arguments.map(|text| RawValue::from_string(text.to_owned()).unwrap()),
        meta: Vec::new(),
        headers: Vec::new(),
        progress: None,
        task: None,
    }
}

/// Waits until a count is reached.
pub(crate) async fn reached(count: &tokio::sync::watch::Sender<usize>, least: usize) {
    let mut seen = count.subscribe();
    tokio::time::timeout(SOON, seen.wait_for(|count| *count >= least)).await.unwrap().unwrap();
}
