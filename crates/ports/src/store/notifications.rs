//! The outbox of task events: what is still to be told to whom (contract 6.9, durability.md 1.9; invariant N1).
//!
//! One row for each task and sink, made in the commit of the event itself ([`super::Tasks::apply`]). What becomes of a
//! row is decided by [`caribou_core::notification`]; the store applies it under the claim, to the row as it is then.

use std::time::Duration;

use caribou_core::holding::Token;
use caribou_core::ids::{BootId, Scope, ServerName};
use caribou_core::notification::{Audience, Delivery, Happened, Sink};
use caribou_core::task::{Status, TaskId, TaskLimits};

use super::{Settled, StoreError};
use crate::BoxFuture;

/// The deliveries of all tasks.
pub trait Notifications: Send + Sync + 'static {
    /// Claims deliveries to this sink that are due, the longest due first.
    fn claim_deliveries(&self, wanted: ClaimDeliveries) -> BoxFuture<'_, Result<Vec<ClaimedDelivery>, StoreError>>;

    /// Reserves the launch of the event `seq`, before anything is sent.
    fn reserve_launch(&self, claim: DeliveryClaim, seq: i64) -> BoxFuture<'_, Result<Reserved, StoreError>>;

    /// Settles a delivery by the rule of [`Delivery::after`].
    fn settle_delivery(
        &self,
        claim: DeliveryClaim,
        happened: Happened,
        limits: TaskLimits,
    ) -> BoxFuture<'_, Result<Settled, StoreError>>;

    /// Gives claims back untouched, due at once; fenced ones are left alone.
    fn release_deliveries(&self, claims: Vec<DeliveryClaim>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// What is still to be told of a task, or was given up.
    fn deliveries(&self, task: TaskId) -> BoxFuture<'_, Result<Vec<(Sink, Delivery)>, StoreError>>;

    /// What was given up, by task and sink, those after `after` only; at most `limit`.
    fn dead_letters(
        &self,
        after: Option<(TaskId, Sink)>,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<DeadLetter>, StoreError>>;

    /// Takes up what was given up.
    fn redeliver(&self, task: TaskId, sink: Sink) -> BoxFuture<'_, Result<Redelivered, StoreError>>;

    /// The events of a task after `seq`, in order; at most `limit`.
    fn events(&self, task: TaskId, after: i64, limit: u32) -> BoxFuture<'_, Result<Vec<StoredEvent>, StoreError>>;

    /// How long until a delivery to this sink is due; zero = one is, `None` = there is none.
    fn next_delivery(&self, sink: Sink) -> BoxFuture<'_, Result<Option<Duration>, StoreError>>;

    /// Makes due at once what a replica holds that was declared dead, up to `within` ahead. How many.
    fn take_back_deliveries(&self, dead: BootId, within: Duration) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// What was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The task.
    pub task: TaskId,
    /// To which sink.
    pub sink: Sink,
    /// How far it came.
    pub delivery: Delivery,
}

/// The claim of one delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryClaim {
    /// The task.
    pub task: TaskId,
    /// The sink.
    pub sink: Sink,
    /// Proves it.
    pub token: Token,
}

/// Which deliveries are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimDeliveries {
    /// Who claims.
    pub owner: BootId,
    /// To which sink.
    pub sink: Sink,
    /// Whose tasks they are about.
    pub of: Audience,
    /// As many as are made at once now; at most [`super::MAX_CLAIMED`].
    pub at_most: u32,
    /// How long the claims hold.
    pub lease: Duration,
}

/// A delivery that was claimed, and all that is needed to make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedDelivery {
    /// The claim.
    pub claim: DeliveryClaim,
    /// How far it is; [`Delivery::step`] says what is next.
    pub delivery: Delivery,
    /// Whose task it is, in which thread.
    pub scope: Scope,
    /// The server.
    pub server: ServerName,
    /// The run of an agent that asked for the task.
    pub run_id: Option<String>,
    /// The event that the next step is about.
    pub event: StoredEvent,
}

/// Whether a launch may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// It may, under [`Delivery::key`] of this.
    Reserved(Delivery),
    /// A newer event came, or a launch is under way: nothing may be sent. The claim is given back, due at once.
    Superseded,
    /// The claim is lost.
    Fenced,
}

/// Whether something was taken up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redelivered {
    /// It was; it is due at once.
    TakenUp,
    /// It was not given up, or is already told.
    NotGivenUp,
}

/// One recorded change of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its number within the task, from 1, without gaps.
    pub seq: i64,
    /// What the task was then.
    pub status: Status,
    /// What is told: JSON.
    pub body: String,
    /// When it was recorded, in microseconds of the Unix epoch by the store's clock. For people only.
    pub at_us: i64,
}
