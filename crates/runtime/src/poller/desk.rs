//! What one attempt needs, shared by all of this replica.

use std::sync::Arc;

use caribou_core::identity::Rate;
use caribou_core::ids::BootId;
use caribou_core::notification::Sink;
use caribou_core::task::{SnapshotFingerprint, TaskLimits};
use caribou_ports::store::TaskStore;
use opentelemetry::metrics::Meter;

use super::batch::Batch;
use super::message::Poller;
use super::metrics::TaskMetrics;
use super::road::Road;
use super::servers::Servers;
use crate::membership::Membership;

/// Everything that following tasks needs. One for each replica.
pub(crate) struct Desk {
    pub(super) store: Arc<dyn TaskStore>,
    pub(super) road: Arc<dyn Road>,
    pub(super) membership: Membership,
    pub(super) boot: BootId,
    pub(super) limits: TaskLimits,
    /// Where events go that ask for attention.
    pub(super) sinks: Vec<Sink>,
    /// The configurations of task servers that this replica has.
    pub(super) configurations: Vec<SnapshotFingerprint>,
    pub(super) servers: Servers,
    pub(super) batch: Batch,
    pub(super) metrics: TaskMetrics,
    pub(super) poller: Poller,
}

/// What a desk is made of.
pub(crate) struct DeskParts {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) road: Arc<dyn Road>,
    pub(crate) membership: Membership,
    pub(crate) boot: BootId,
    pub(crate) limits: TaskLimits,
    pub(crate) sinks: Vec<Sink>,
    pub(crate) configurations: Vec<SnapshotFingerprint>,
}

impl Desk {
    /// Begins to store unchanged polls in batches; ends when the desk is dropped.
    pub(crate) fn open(parts: DeskParts, meter: &Meter) -> Arc<Self> {
        let DeskParts { store, road, membership, boot, limits, sinks, configurations } = parts;
        let (metrics, poller) = (TaskMetrics::new(meter), Poller::vacant());
        let batch = Batch::open(store.clone(), membership.clone(), poller.clone(), metrics.clone());
        let per_server = usize::try_from(limits.per_server).unwrap_or(usize::MAX);
        let servers = Servers::new(per_server, Rate::new(limits.polls_per_second.into(), limits.polls_per_second));
        Arc::new(Self { store, road, membership, boot, limits, sinks, configurations, servers, batch, metrics, poller })
    }

    /// The role that works at this desk.
    pub(crate) fn poller(&self) -> &Poller {
        &self.poller
    }
}
