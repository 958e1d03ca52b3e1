//! What one attempt needs, shared by all of one sink.

use std::sync::Arc;

use caribou_core::ids::BootId;
use caribou_core::notification::{Happened, Sink};
use caribou_core::task::TaskLimits;
use caribou_ports::event_sink::EventSink;
use caribou_ports::store::{ClaimedDelivery, Settled, TaskStore};
use opentelemetry::metrics::Meter;

use super::message::Notifier;
use super::metrics::DeliveryMetrics;
use crate::membership::Membership;
use crate::poller::persist;

/// Everything that telling one sink needs.
pub(crate) struct Desk {
    pub(super) store: Arc<dyn TaskStore>,
    pub(super) sink: Arc<dyn EventSink>,
    pub(super) membership: Membership,
    pub(super) boot: BootId,
    pub(super) limits: TaskLimits,
    pub(super) metrics: DeliveryMetrics,
    pub(super) notifier: Notifier,
}

/// What a desk is made of.
pub(crate) struct DeskParts {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) sink: Arc<dyn EventSink>,
    pub(crate) membership: Membership,
    pub(crate) boot: BootId,
    pub(crate) limits: TaskLimits,
}

impl Desk {
    pub(crate) fn new(parts: DeskParts, meter: &Meter) -> Arc<Self> {
        let DeskParts { store, sink, membership, boot, limits } = parts;
        let metrics = DeliveryMetrics::new(meter, sink.sink());
        Arc::new(Self { store, sink, membership, boot, limits, metrics, notifier: Notifier::vacant() })
    }

    /// The role that works at this desk.
    pub(crate) fn notifier(&self) -> &Notifier {
        &self.notifier
    }

    /// Whom it tells.
    pub(crate) fn to(&self) -> Sink {
        self.sink.sink()
    }

    /// Stores what happened, under the claim (invariant C1). Without trust nothing is stored; the claim expires.
    pub(super) async fn settle(&self, claimed: &ClaimedDelivery, happened: Happened) {
        let (task, sink) = (claimed.claim.task, self.to().word());
        if !self.membership.may_act() {
            tracing::warn!(%task, sink, "not stored: the lease of this replica is over");
            return;
        }
        let settled = persist("what became of a delivery", || {
            self.store.settle_delivery(claimed.claim.clone(), happened.clone(), self.limits)
        });
        match settled.await {
            Some(Settled::Settled) => self.settled(claimed, &happened),
            Some(Settled::Fenced) => {
                self.metrics.happened("fenced");
                tracing::debug!(%task, sink, "dropped what became of a delivery: its claim is lost");
            }
            None => {}
        }
    }

    fn settled(&self, claimed: &ClaimedDelivery, happened: &Happened) {
        let (task, sink, event) = (claimed.claim.task, self.to().word(), claimed.event.seq);
        self.metrics.happened(word(happened));
        match happened {
            Happened::GaveUp => {
                let why = claimed.delivery.error.as_deref().unwrap_or("it failed too often");
                tracing::warn!(%task, sink, event, "an event is given up; redeliver it once the receiver works: {why}");
            }
            Happened::Gone(why) => {
                tracing::warn!(%task, sink, event, "an event is given up; redeliver it if that was wrong: {why}");
            }
            Happened::Refused(why) | Happened::Unclear(why) | Happened::Failed(why) | Happened::NotLookedUp(why) => {
                tracing::debug!(%task, sink, event, "an event is not told yet: {why}");
            }
            _ => {}
        }
    }
}

fn word(happened: &Happened) -> &'static str {
    match happened {
        Happened::GaveUp => "given_up",
        Happened::Taken | Happened::Succeeded => "told",
        Happened::Launched { .. } => "launched",
        Happened::Busy => "busy",
        Happened::Gone(_) => "gone",
        Happened::Refused(_) => "refused",
        Happened::Unclear(_) => "unclear",
        Happened::Failed(_) => "failed",
        Happened::Active => "active",
        Happened::NobodyThere => "nobody_there",
        Happened::NotLookedUp(_) => "not_looked_up",
    }
}
