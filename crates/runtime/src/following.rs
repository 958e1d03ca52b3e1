//! Puts together what follows tasks in this replica: the poller, and who tells of them. What they decide is theirs; the
//! lease that they act under is the replica's.

use std::sync::Arc;

use caribou_ports::event_sink::EventSink as _;
use futures::future::{join, join_all};
use opentelemetry::metrics::Meter;

use crate::membership::Membership;
use crate::notifier::{self, Notifier};
use crate::poller::{Desk, DeskParts, Group, Poller};
use crate::start::Runtime;
use crate::tasks::TaskRoad;

/// The roles that follow tasks. Clones are the same.
#[derive(Clone)]
pub(crate) struct Following {
    pub(crate) poller: Poller,
    pub(crate) group: Group,
    /// One for each sink.
    pub(crate) notifiers: Vec<(notifier::Group, Notifier)>,
}

impl Following {
    /// Starts nothing yet.
    pub(crate) fn new(road: &Arc<TaskRoad>, membership: &Membership, meter: &Meter) -> Self {
        let parts = DeskParts {
            store: road.store.clone(),
            road: road.clone(),
            membership: membership.clone(),
            boot: road.boot.clone(),
            limits: road.limits,
            sinks: road.sinks(),
            configurations: road.configurations(),
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
        let poller = desk.poller().clone();
        Self { poller, group: Group { desk }, notifiers }
    }

    /// Ends what is under way, or gives it back. What the poller found out last is told by another replica, or after the
    /// next start.
    pub(crate) async fn stop(&self) {
        let notifiers = join_all(self.notifiers.iter().map(|(_, notifier)| notifier.stop()));
        join(self.poller.stop(), notifiers).await;
    }
}

impl Runtime {
    /// Whether tasks are followed to their ends by this replica.
    pub fn follows_tasks(&self) -> bool {
        self.following.as_ref().is_some_and(|following| following.poller.is_running())
    }
}
