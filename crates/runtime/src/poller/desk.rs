//! What one attempt needs, shared by all of this replica.

use std::sync::Arc;

use caribou_core::bounds;
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

/// Bounds of the poller that are not of the contract.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollerOptions {
    /// Attempts at the same time for tasks of one server.
    pub(crate) per_server: usize,
    /// Polls of one server; `None` = as many as there are.
    pub(crate) rate: Option<Rate>,
}

impl Default for PollerOptions {
    fn default() -> Self {
        let per_second = bounds::TASK_POLLS_PER_SECOND;
        Self { per_server: bounds::TASKS_PER_SERVER, rate: Rate::new(per_second.into(), per_second) }
    }
}

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
    pub(crate) options: PollerOptions,
}

impl Desk {
    /// Begins to store unchanged polls in batches; ends when the desk is dropped.
    pub(crate) fn open(parts: DeskParts, meter: &Meter) -> Arc<Self> {
        let DeskParts { store, road, membership, boot, limits, sinks, configurations, options } = parts;
        let (metrics, poller) = (TaskMetrics::new(meter), Poller::vacant());
        let batch = Batch::open(store.clone(), membership.clone(), poller.clone(), metrics.clone());
        let servers = Servers::new(options.per_server, options.rate);
        Arc::new(Self { store, road, membership, boot, limits, sinks, configurations, servers, batch, metrics, poller })
    }

    /// The role that works at this desk.
    pub(crate) fn poller(&self) -> &Poller {
        &self.poller
    }
}
