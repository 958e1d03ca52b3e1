//! Puts together what follows tasks in this replica: its lease, the poller, and who tells of them. What they decide is
//! theirs.

use std::sync::Arc;

use caribou_core::holding::{LeaseProfile, LifeOver};
use caribou_ports::event_sink::EventSink as _;
use futures::future::{join, join_all};
use opentelemetry::metrics::Meter;

use crate::membership::{Keeper, Membership, MembershipMessage, PeerView};
use crate::notifier::{self, Notifier};
use crate::poller::{Desk, DeskParts, Group, Poller};
use crate::roles::Role;
use crate::start::Runtime;
use crate::tasks::TaskRoad;

/// The roles that follow tasks. Clones are the same.
#[derive(Clone)]
pub(crate) struct Following {
    pub(crate) membership: Membership,
    pub(crate) poller: Poller,
    pub(crate) keeper: (Keeper, Role<MembershipMessage>),
    pub(crate) group: Group,
    /// One for each sink.
    pub(crate) notifiers: Vec<(notifier::Group, Notifier)>,
}

impl Following {
    /// Starts nothing yet.
    pub(crate) fn new(road: &Arc<TaskRoad>, profile: LeaseProfile, meter: &Meter) -> Self {
        let membership = Membership::new(profile);
        let configurations = road.configurations();
        let parts = DeskParts {
            store: road.store.clone(),
            road: road.clone(),
            membership: membership.clone(),
            boot: road.boot.clone(),
            limits: road.limits,
            sinks: road.sinks(),
            configurations: configurations.clone(),
        };
        let desk = Desk::open(parts, meter);
        let notifiers = road.sinks.iter().map(|sink| {
            let (store, sink, membership) = (road.store.clone(), sink.clone(), membership.clone());
            let (boot, limits) = (road.boot.clone(), road.limits);
            let desk = notifier::Desk::new(notifier::DeskParts { store, sink, membership, boot, limits }, meter);
            let notifier = desk.notifier().clone();
            if let Some(watchers) = road.watchers.as_ref().filter(|watchers| watchers.sink() == desk.to()) {
                watchers.wake(notifier.clone());
            }
            (notifier::Group { desk }, notifier)
        });
        let notifiers = notifiers.collect();
        let (store, boot) = (road.store.clone(), road.boot.clone());
        let keeper = Keeper { store, boot, configurations, membership: membership.clone() };
        let poller = desk.poller().clone();
        Self { membership, poller, keeper: (keeper, Role::vacant()), group: Group { desk }, notifiers }
    }

    /// Ends what is under way, or gives it back. What the poller found out last is told by another replica, or after the
    /// next start.
    pub(crate) async fn stop(&self) {
        let notifiers = join_all(self.notifiers.iter().map(|(_, notifier)| notifier.stop()));
        join(self.poller.stop(), notifiers).await;
    }
}

impl Runtime {
    /// Resolves when this life of this replica must not act any more: another replica took over what it held. Whoever
    /// runs the process drains it and ends it with an error, so that a new life is started. Never without durable tasks.
    pub async fn life_over(&self) -> LifeOver {
        match &self.following {
            Some(following) => following.membership.over().await,
            None => std::future::pending().await,
        }
    }

    /// Who else there is, as of the last look; `None` without durable tasks.
    pub fn peers(&self) -> Option<Arc<PeerView>> {
        self.following.as_ref().map(|following| following.membership.peers())
    }

    /// Whether tasks are followed to their ends by this replica.
    pub fn follows_tasks(&self) -> bool {
        self.following.as_ref().is_some_and(|following| following.poller.is_running())
    }
}
