//! Deliveries as they are stored.

use caribou_core::holding::Token;
use caribou_core::ids::{BootId, ServerName};
use caribou_core::notification::{Delivery, Phase, Sink};
use caribou_core::task::{Status, TaskId};
use caribou_ports::store::{ClaimedDelivery, DeliveryClaim, StoreError, StoredEvent};
use uuid::Uuid;

use crate::sql::row::row;
use crate::sql::tasks::{count, scope, strange};

/// The columns of a delivery, in the order of [`DeliveryRow`].
macro_rules! delivery_columns {
    ($table:literal) => {
        concat!(
            $table,
            "phase, ",
            $table,
            "newest, ",
            $table,
            "launched, ",
            $table,
            "attempt, ",
            $table,
            "failures, ",
            $table,
            "unclear, ",
            $table,
            "run_id, ",
            $table,
            "error"
        )
    };
}

pub(super) use delivery_columns;

/// One delivery.
pub(in crate::sql) type DeliveryRow = (i16, i64, Option<i64>, i32, i32, i32, Option<String>, Option<String>);

/// What a stored delivery is.
pub(in crate::sql) fn delivery(row: DeliveryRow) -> Result<Delivery, StoreError> {
    let (phase, newest, launched, attempt, failures, unclear, run_id, error) = row;
    Ok(Delivery {
        phase: Phase::from_number(phase).ok_or_else(|| strange("phase"))?,
        newest,
        launched,
        attempt: count(attempt),
        failures: count(failures),
        unclear: count(unclear),
        run_id,
        error,
    })
}

/// A count as it is stored.
pub(in crate::sql) fn number(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

row! {
    /// A claimed delivery with its event.
    ClaimedRow {
        task_id: Uuid,
        claim_seq: i64,
        user_id: String,
        thread_id: String,
        server: String,
        task_run_id: Option<String>,
        seq: i64,
        status: i16,
        body: String,
        at_us: i64,
        phase: i16,
        newest: i64,
        launched: Option<i64>,
        attempt: i32,
        failures: i32,
        unclear: i32,
        run_id: Option<String>,
        error: Option<String>,
    }
}

/// The columns of [`ClaimedRow`], of `d` (delivery), `t` (task) and `e` (event).
macro_rules! claimed_columns {
    ($at_us:literal) => {
        concat!(
            "d.task_id, d.claim_seq, t.user_id, t.thread_id, t.server, t.run_id, e.seq, e.status, e.body, ",
            $at_us,
            ", ",
            delivery_columns!("d.")
        )
    };
}

/// The event that the next step of a delivery is about: of a launch its own, else the newest
/// ([`caribou_core::notification::Delivery::step`]).
macro_rules! its_event {
    () => {
        "e.task_id = d.task_id AND e.seq = CASE WHEN d.phase IN (1, 2) THEN d.launched ELSE d.newest END"
    };
}

pub(super) use {claimed_columns, its_event};

impl ClaimedRow {
    /// The claimed delivery.
    pub(super) fn claimed(self, owner: &BootId, sink: Sink) -> Result<ClaimedDelivery, StoreError> {
        let token = Token { seq: self.claim_seq, owner: owner.clone() };
        Ok(ClaimedDelivery {
            claim: DeliveryClaim { task: TaskId(self.task_id.into_bytes()), sink, token },
            scope: scope(self.user_id, self.thread_id),
            server: ServerName::new(self.server),
            run_id: self.task_run_id,
            event: event((self.seq, self.status, self.body, self.at_us))?,
            delivery: delivery((
                self.phase,
                self.newest,
                self.launched,
                self.attempt,
                self.failures,
                self.unclear,
                self.run_id,
                self.error,
            ))?,
        })
    }
}

/// What a stored event is.
pub(super) fn event((seq, status, body, at_us): (i64, i16, String, i64)) -> Result<StoredEvent, StoreError> {
    let status = Status::from_number(status).ok_or_else(|| strange("status"))?;
    Ok(StoredEvent { seq, status, body, at_us })
}
