//! What replicas of one cluster share: the way to the others, the door they come by, and one key for all.
//!
//! Owns that a replica says where it is only once it listens there, and that sessions are shared only over PostgreSQL:
//! an embedded database has one replica.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use caribou_core::credentials::CredentialKey;
use caribou_core::ids::BootId;
use caribou_grpc::{Membership, PeerClient, PeerDoor, PeerOptions, serve_peers};
use caribou_oauth::{CREDENTIALS_KEY, Cipher, KeyRing, derived_key};
use caribou_ports::store::ThreadVolumes as _;
use caribou_ports::vault::Vault;
use caribou_runtime::{Cluster, Runtime};
use caribou_store::{Location, SqlStore};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::settings::Settings;
use crate::tls::FollowedPeers;
use crate::volume;

/// What the key that tells credentials of requests apart is derived for.
const PURPOSE: &str = "credentials of requests";

/// How long requests of other replicas may take to finish once nothing is left that they could ask for.
const DRAIN: Duration = Duration::from_secs(1);

/// The socket that other replicas come by, which nobody is served on yet.
pub(crate) struct PeerSocket {
    listener: TcpListener,
    pub(crate) standing: PeerStanding,
}

/// Where this replica is reached by others, and what it shows them.
#[derive(Clone)]
pub(crate) struct PeerStanding {
    /// `host:port`.
    pub(crate) advertised: String,
    membership: Membership,
    tls: Option<FollowedPeers>,
    credentials: CredentialKey,
}

impl PeerSocket {
    /// Opens what the settings name; `None` = sessions are not shared.
    ///
    /// # Errors
    /// The database is not PostgreSQL; the address cannot be bound; a file of `cluster.tls` cannot be used; there is no
    /// key that all replicas have.
    pub(crate) async fn open(settings: &Settings) -> anyhow::Result<Option<Self>> {
        let cluster = &settings.cluster;
        let Some(address) = cluster.listen else { return Ok(None) };
        let credentials = demand(settings)?;
        let tls = FollowedPeers::begin(&cluster.tls)?;
        if cluster.is_readable() {
            tracing::warn!("what replicas say to one another is not encrypted: `cluster.allow_plaintext` is set");
        }
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("cluster.listen: cannot listen on {address}"))?;
        let bound = listener.local_addr().context("cluster.listen")?;
        let standing = PeerStanding {
            advertised: cluster.advertise.clone().unwrap_or_else(|| bound.to_string()),
            membership: membership(settings),
            tls,
            credentials,
        };
        Ok(Some(Self { listener, standing }))
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The socket is gone.
    pub(crate) fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Whether connections are encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.standing.tls.is_some()
    }

    /// Serves the sessions of `runtime` to others until `gone`, in a task of its own: callers' doors close before.
    pub(crate) fn serve(self, runtime: Runtime, gone: CancellationToken) {
        let PeerStanding { membership, tls, .. } = self.standing;
        let door = PeerDoor { membership, tls: tls.map(|tls| tls.server) };
        tokio::spawn(async move {
            let served = serve_peers(self.listener, door, Arc::new(runtime), gone.cancelled_owned(), DRAIN).await;
            if let Err(error) = served {
                tracing::error!("other replicas do not reach this one any more: {error}");
            }
        });
    }
}

impl PeerStanding {
    /// What the runtime of this life shares with others.
    ///
    /// # Errors
    /// The volume of threads has no name, or what it is called cannot be put on record.
    pub(crate) async fn cluster(
        &self,
        boot: &BootId,
        store: &SqlStore,
        settings: &Settings,
    ) -> anyhow::Result<Cluster> {
        let tls = self.tls.clone();
        let peers = way(settings, boot.clone(), self.membership.clone(), tls);
        let volume = match settings.threads.shared {
            true => None,
            false => {
                let volume = volume::at(&std::path::absolute(settings.threads.root(&settings.data_dir))?).await?;
                store.mount(boot.clone(), volume.clone()).await?;
                Some(volume)
            }
        };
        let credentials = self.credentials.clone();
        // A key that only this instance has would seal what nobody else can read: that is no harm, only of no use.
        let ring = crate::credentials::key_ring(settings).await?;
        let vault = ring.map(|ring| Arc::new(Cipher::new(ring)) as Arc<dyn Vault>);
        Ok(Cluster { store: Arc::new(store.clone()), peers: Arc::new(peers), credentials, vault, volume })
    }
}

/// The way to the other replicas for somebody who is none: what they ask for is shown as a replica shows it.
///
/// # Errors
/// A file of `cluster.tls` cannot be used.
pub(crate) fn way_to_peers(settings: &Settings, boot: BootId) -> anyhow::Result<PeerClient> {
    let tls = FollowedPeers::begin(&settings.cluster.tls)?;
    Ok(way(settings, boot, membership(settings), tls))
}

fn way(settings: &Settings, boot: BootId, membership: Membership, tls: Option<FollowedPeers>) -> PeerClient {
    PeerClient::new(PeerOptions {
        tls: tls.map(|tls| tls.client),
        certificate_name: settings.cluster.tls.name.clone(),
        call_max: Duration::from_secs_f64(settings.calls.max_seconds),
        ..PeerOptions::new(boot, membership)
    })
}

fn membership(settings: &Settings) -> Membership {
    Membership::new(settings.cluster.secret.as_ref().map(|secret| secret.value().secret()))
}

/// What sessions can be shared by: the key that all replicas have.
///
/// # Errors
/// The database is not PostgreSQL, or there is no such key.
pub(crate) fn demand(settings: &Settings) -> anyhow::Result<CredentialKey> {
    if !(settings.has_database() && matches!(settings.database_location(), Location::Postgres(_))) {
        bail!("`cluster.listen` shares sessions between replicas, which needs PostgreSQL: set `database_url`");
    }
    credentials(settings)
}

/// The key that tells credentials of requests apart, the same on every replica: without it two replicas would open two
/// sessions for one and the same caller.
fn credentials(settings: &Settings) -> anyhow::Result<CredentialKey> {
    if let Some(secret) = &settings.cluster.secret {
        return Ok(CredentialKey::new(derived_key(secret.value().secret().expose().as_bytes(), PURPOSE)));
    }
    let ring = KeyRing::from_variables(&|name| std::env::var(name).ok())?;
    let ring = ring.with_context(|| {
        format!("`cluster.listen` without `cluster.secret` needs {CREDENTIALS_KEY}, the same for every replica")
    })?;
    Ok(CredentialKey::new(ring.derive(PURPOSE)))
}
