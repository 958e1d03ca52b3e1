//! This life among the others: its standing, and who keeps its lease. There is one as soon as replicas share anything
//! through a store: tasks, or sessions.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::holding::{LeaseProfile, LifeOver};
use caribou_core::ids::BootId;
use caribou_core::task::SnapshotFingerprint;
use caribou_ports::store::TaskStore;
use tokio::time::timeout;

use super::{Keeper, Membership, MembershipMessage, PeerView};
use crate::outside::Outside;
use crate::roles::Role;
use crate::start::Runtime;

/// How long a start waits for the first renewal: it comes at once when there is a store at all.
const FIRST_TRUST: Duration = Duration::from_secs(5);

/// This life. Clones are the same.
#[derive(Clone)]
pub(crate) struct OwnLife {
    pub(crate) membership: Membership,
    pub(crate) keeper: (Keeper, Role<MembershipMessage>),
    /// Whether other replicas may take over what this one holds, sessions too.
    is_shared: bool,
}

impl OwnLife {
    /// The life of this boot, begun on record; kept as soon as the role is filled. `None` = nothing is shared with
    /// anybody.
    pub(crate) fn of(boot: &BootId, outside: &Outside, profile: LeaseProfile) -> Option<Self> {
        let of_cluster = outside.cluster.as_ref().map(|cluster| cluster.store.clone() as Arc<dyn TaskStore>);
        let store = of_cluster.or_else(|| outside.tasks.as_ref().map(|tasks| tasks.store.clone()));
        let Some(store) = store else {
            // Nobody else can take over anything.
            outside.machine.iter().for_each(|machine| machine.trust_until(Duration::MAX));
            return None;
        };
        let peers = outside.cluster.as_ref().map(|cluster| cluster.peers.clone());
        let is_shared = peers.is_some() || outside.machine.is_some();
        let membership = Membership::on(profile, outside.machine.clone());
        let (boot, configurations) = (boot.clone(), Vec::new());
        let keeper = Keeper { store, boot, configurations, membership: membership.clone(), peers };
        Some(Self { membership, keeper: (keeper, Role::vacant()), is_shared })
    }

    /// The same, with the configurations that tasks are followed under here.
    pub(crate) fn under(mut self, configurations: Vec<SnapshotFingerprint>) -> Self {
        self.keeper.0.configurations = configurations;
        self
    }

    /// Whether others may take over what this life holds, sessions too.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Waits for the first trust, if children cannot be started before; not for ever.
    pub(crate) async fn begun(&self) {
        if self.membership.machine().is_some() && timeout(FIRST_TRUST, self.membership.begun()).await.is_err() {
            tracing::warn!("the lease of this replica does not hold yet; until it does, no server is started");
        }
    }

    /// From now on this life takes nothing new. That is on record, unless the store is away: the others then go by what
    /// this replica itself answers.
    pub(crate) async fn drain(&self) {
        self.membership.drain();
        let Keeper { store, boot, .. } = &self.keeper.0;
        match timeout(bounds::STORE_REQUEST, store.drain(boot.clone())).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("it is not on record that this replica drains: {error}"),
            Err(_) => tracing::warn!("it is not on record that this replica drains: no answer in time"),
        }
    }
}

impl Runtime {
    /// Resolves when this life of this replica must not act any more: another replica took over what it held. Whoever
    /// runs the process drains it and ends it with an error, so that a new life is started. Never for a replica that
    /// shares nothing.
    pub async fn life_over(&self) -> LifeOver {
        match &self.life {
            Some(life) => life.membership.over().await,
            None => std::future::pending().await,
        }
    }

    /// Who else there is, as of the last look; `None` for a replica that shares nothing.
    pub fn peers(&self) -> Option<Arc<PeerView>> {
        self.life.as_ref().map(|life| life.membership.peers())
    }

    /// Why no work is welcome here at the moment, in words for whoever looks at replicas; `None` = it is.
    pub fn unready(&self) -> Option<&'static str> {
        let life = self.life.as_ref()?;
        if life.membership.is_over() {
            Some("stopping: another replica took over what this one held")
        } else if life.membership.is_draining() {
            Some("draining: this replica hands over what it has")
        } else if life.is_shared && !life.membership.may_act() {
            Some("the lease of this replica does not hold: it could not be renewed in the database for too long")
        } else {
            None
        }
    }
}
