//! Whether the other replicas can be reached as a request would reach them, and whether all of them are alike.

use caribou_core::ids::BootId;
use caribou_grpc::PeerClient;
use caribou_ports::peers::{PeerAddress, PeerError};
use caribou_ports::store::{Replicas as _, StoredReplica};
use caribou_store::SqlStore;
use futures::StreamExt as _;

use super::finding::Finding;
use super::ground::Ground;
use crate::cluster;

/// How many are greeted at once.
const AT_ONCE: usize = 16;

/// How many are greeted at all: what is wrong with a larger cluster shows in these.
const MOST: usize = 64;

/// The version of this program.
const OURS: &str = env!("CARGO_PKG_VERSION");

pub(super) async fn check(ground: &Ground, store: Option<&SqlStore>) -> Vec<Finding> {
    if let Some(spoiled) = ground.spoiled(&["cluster", "database_url", "database"]) {
        return vec![spoiled];
    }
    if ground.settings.cluster.listen.is_none() {
        return vec![Finding::skipped(
            "sessions are not shared with other replicas: `cluster.listen` is not set",
            None,
        )];
    }
    if let Err(error) = cluster::demand(&ground.settings) {
        return vec![Finding::failed(
            format!("{error:#}"),
            "or leave `cluster.listen` out: sessions are not shared then",
        )];
    }
    let Some(store) = store else {
        return vec![Finding::skipped("the database says which replicas there are, and cannot be asked", None)];
    };
    let living = match living(store).await {
        Ok(living) => living,
        Err(finding) => return vec![finding],
    };
    if living.is_empty() {
        return vec![Finding::ok("no replica runs")];
    }
    let boot = BootId::new(uuid::Uuid::now_v7().to_string());
    let client = match cluster::way_to_peers(&ground.settings, boot) {
        Ok(client) => client,
        Err(error) => return vec![Finding::failed(format!("{error:#}"), "mend `cluster.tls`")],
    };
    let greeted = living.iter().take(MOST).map(|peer| greet(&client, peer));
    let mut found: Vec<Finding> = futures::stream::iter(greeted).buffered(AT_ONCE).collect().await;
    found.extend(unlike(&living));
    found
}

/// The replicas whose lease holds.
async fn living(store: &SqlStore) -> Result<Vec<StoredReplica>, Finding> {
    let list =
        store.list().await.map_err(|error| Finding::failed(error.to_string(), "see that the database answers"))?;
    Ok(list.into_iter().filter(|peer| !peer.lease_left.is_zero()).collect())
}

async fn greet(client: &PeerClient, peer: &StoredReplica) -> Finding {
    let host = &peer.replica.host;
    let Some(address) = &peer.replica.address else {
        return Finding::warning(
            "shares the database and no sessions: it does not say where it is reached",
            "set `cluster.listen` there as here",
        )
        .about(host);
    };
    let to = PeerAddress { boot: peer.replica.boot.clone(), address: address.clone() };
    let found = match client.greet(to).await {
        Ok(version) if version == OURS => Finding::ok(format!("{address}, version {version}")),
        Ok(version) => {
            let what = format!("{address}, version {version}, and this one is {OURS}");
            Finding::warning(what, "let all replicas come to one version; for the time of an update this is as meant")
        }
        Err(PeerError::NotTaken(why)) => Finding::failed(
            format!("{address}: {why}"),
            "another process answers there: give each replica a `cluster.advertise` of its own",
        ),
        Err(error) => Finding::failed(
            error.to_string(),
            "see that `cluster.advertise` there is reached from here, and that `cluster.secret` and `cluster.tls` \
             are the same on both",
        ),
    };
    found.about(host)
}

/// What the living tell of themselves and do not agree on.
fn unlike(living: &[StoredReplica]) -> Option<Finding> {
    let configurations = |peer: &StoredReplica| {
        let mut told = peer.configurations.clone();
        told.sort_unstable();
        told
    };
    let first = living.first().map(configurations)?;
    living.iter().any(|peer| configurations(peer) != first).then(|| {
        Finding::warning(
            "replicas were started with different configurations of task servers: some tasks are followed by some only",
            "give all the same document and the same variables, and start again those from before the change",
        )
    })
}
