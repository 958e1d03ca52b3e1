//! The port, each method where it is written.

use std::time::Duration;

use caribou_core::ids::BootId;
use caribou_core::notification::{Delivery, Happened, Sink};
use caribou_core::task::{TaskId, TaskLimits};
use caribou_ports::BoxFuture;
use caribou_ports::store::{
    ClaimDeliveries, ClaimedDelivery, DeadLetter, DeliveryClaim, Notifications, Redelivered, Reserved, Settled,
    StoreError, StoredEvent,
};

use super::{claim, look, settle};
use crate::sql::SqlStore;

type Answered<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

impl Notifications for SqlStore {
    fn claim_deliveries(&self, wanted: ClaimDeliveries) -> Answered<'_, Vec<ClaimedDelivery>> {
        Box::pin(claim::claim(self, wanted))
    }

    fn reserve_launch(&self, claim: DeliveryClaim, seq: i64) -> Answered<'_, Reserved> {
        Box::pin(settle::reserve(self, claim, seq))
    }

    fn settle_delivery(&self, claim: DeliveryClaim, happened: Happened, limits: TaskLimits) -> Answered<'_, Settled> {
        Box::pin(settle::settle(self, claim, happened, limits))
    }

    fn release_deliveries(&self, claims: Vec<DeliveryClaim>) -> Answered<'_, ()> {
        Box::pin(settle::release(self, claims))
    }

    fn deliveries(&self, task: TaskId) -> Answered<'_, Vec<(Sink, Delivery)>> {
        Box::pin(look::of_task(self, task))
    }

    fn dead_letters(&self, after: Option<(TaskId, Sink)>, limit: u32) -> Answered<'_, Vec<DeadLetter>> {
        Box::pin(look::dead(self, after, limit))
    }

    fn redeliver(&self, task: TaskId, sink: Sink) -> Answered<'_, Redelivered> {
        Box::pin(settle::redeliver(self, task, sink))
    }

    fn events(&self, task: TaskId, after: i64, limit: u32) -> Answered<'_, Vec<StoredEvent>> {
        Box::pin(look::events(self, task, after, limit))
    }

    fn next_delivery(&self, sink: Sink) -> Answered<'_, Option<Duration>> {
        Box::pin(look::next(self, sink))
    }

    fn take_back_deliveries(&self, dead: BootId, within: Duration) -> Answered<'_, u64> {
        Box::pin(look::take_back(self, dead, within))
    }
}
