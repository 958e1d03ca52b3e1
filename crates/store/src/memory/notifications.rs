//! The outbox of task events, in memory (invariants C1, N1).

use std::time::Duration;

use caribou_core::holding::{Held, Token};
use caribou_core::ids::BootId;
use caribou_core::notification::{After, Delivery, Happened, Sink};
use caribou_core::task::{TaskId, TaskLimits};
use caribou_ports::BoxFuture;
use caribou_ports::store::{
    ClaimDeliveries, ClaimedDelivery, DeadLetter, DeliveryClaim, MAX_CLAIMED, Notifications, Redelivered, Reserved,
    Settled, StoreError, StoredEvent,
};
use tokio::time::Instant;

use super::Memory;
use super::tasks::{Book, OnItsWay};

type Answered<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

fn done<T: Send + 'static>(answer: T) -> Answered<'static, T> {
    Box::pin(async { Ok(answer) })
}

impl Book {
    /// The delivery that this claim holds.
    fn on_its_way(&mut self, claim: &DeliveryClaim) -> Option<&mut OnItsWay> {
        let found = self.deliveries.get_mut(&(claim.task, claim.sink))?;
        let is_due = found.due.is_none_or(|due| due <= Instant::now());
        Held { seq: found.seq, owner: found.owner.as_ref(), is_due }.accepts(&claim.token).then_some(found)
    }

    fn claim_delivery(&mut self, id: TaskId, wanted: &ClaimDeliveries) -> Option<ClaimedDelivery> {
        let task = self.tasks.get(&id)?;
        let found = self.deliveries.get_mut(&(id, wanted.sink))?;
        let delivery = found.delivery.clone();
        let launched = delivery.launched.filter(|_| delivery.phase.is_in_flight());
        let event = task.event(launched.unwrap_or(delivery.newest))?.clone();
        found.seq += 1;
        found.due = Some(Instant::now() + wanted.lease);
        found.owner = Some(wanted.owner.clone());
        let token = Token { seq: found.seq, owner: wanted.owner.clone() };
        Some(ClaimedDelivery {
            claim: DeliveryClaim { task: id, sink: wanted.sink, token },
            delivery,
            scope: task.intent.scope.clone(),
            server: task.intent.server.clone(),
            run_id: task.intent.run_id.clone(),
            event,
        })
    }

    fn settle_delivery(&mut self, claim: &DeliveryClaim, happened: Happened, limits: &TaskLimits) -> Settled {
        let Some(found) = self.on_its_way(claim) else { return Settled::Fenced };
        let is_told = matches!(happened, Happened::Taken | Happened::Succeeded);
        let told = found.delivery.launched.filter(|_| is_told);
        match found.delivery.clone().after(happened, limits) {
            After::Done => drop(self.deliveries.remove(&(claim.task, claim.sink))),
            After::Stays { delivery, due } => {
                found.delivery = delivery;
                found.due = due.map(|due| Instant::now() + due);
                found.owner = None;
            }
        }
        if let Some((task, told)) = self.tasks.get_mut(&claim.task).zip(told) {
            task.told_events.push(told);
        }
        Settled::Settled
    }
}

impl Notifications for Memory {
    fn claim_deliveries(&self, wanted: ClaimDeliveries) -> Answered<'_, Vec<ClaimedDelivery>> {
        let mut book = self.book();
        let now = Instant::now();
        let to_sink = book.deliveries.iter().filter(|((_, sink), _)| *sink == wanted.sink);
        let mut due: Vec<(Option<Instant>, TaskId)> = to_sink
            .filter(|(_, delivery)| delivery.due.is_some_and(|due| due <= now))
            .filter(|((task, _), _)| book.tasks.get(task).is_some_and(|task| wanted.of.covers(&task.intent.scope.user)))
            .map(|((task, _), delivery)| (delivery.due, *task))
            .collect();
        due.sort_unstable();
        due.truncate(usize::try_from(wanted.at_most.min(MAX_CLAIMED)).unwrap_or(0));
        let claimed = due.into_iter().filter_map(|(_, task)| book.claim_delivery(task, &wanted)).collect();
        drop(book);
        done(claimed)
    }

    fn reserve_launch(&self, claim: DeliveryClaim, seq: i64) -> Answered<'_, Reserved> {
        let mut book = self.book();
        let reserved = match book.on_its_way(&claim) {
            None => Reserved::Fenced,
            Some(found) => match found.delivery.clone().reserve(seq) {
                Some(reserved) => {
                    found.delivery = reserved.clone();
                    Reserved::Reserved(reserved)
                }
                None => {
                    (found.due, found.owner) = (Some(Instant::now()), None);
                    Reserved::Superseded
                }
            },
        };
        drop(book);
        done(reserved)
    }

    fn settle_delivery(&self, claim: DeliveryClaim, happened: Happened, limits: TaskLimits) -> Answered<'_, Settled> {
        done(self.book().settle_delivery(&claim, happened, &limits))
    }

    fn release_deliveries(&self, claims: Vec<DeliveryClaim>) -> Answered<'_, ()> {
        let mut book = self.book();
        for claim in claims {
            let Some(found) = book.deliveries.get_mut(&(claim.task, claim.sink)) else { continue };
            if found.seq == claim.token.seq && found.owner.as_ref() == Some(&claim.token.owner) {
                (found.due, found.owner) = (Some(Instant::now()), None);
            }
        }
        drop(book);
        done(())
    }

    fn deliveries(&self, task: TaskId) -> Answered<'_, Vec<(Sink, Delivery)>> {
        let book = self.book();
        let of_task = book.deliveries.iter().filter(|((id, _), _)| *id == task);
        done(of_task.map(|((_, sink), found)| (*sink, found.delivery.clone())).collect())
    }

    fn dead_letters(&self, after: Option<(TaskId, Sink)>, limit: u32) -> Answered<'_, Vec<DeadLetter>> {
        let book = self.book();
        let dead = book.deliveries.iter().filter(|(key, found)| {
            let is_after = after.is_none_or(|after| **key > after);
            is_after && found.due.is_none()
        });
        let dead = dead.take(usize::try_from(limit).unwrap_or(usize::MAX));
        let letter = |((task, sink), found): (&(TaskId, Sink), &OnItsWay)| DeadLetter {
            task: *task,
            sink: *sink,
            delivery: found.delivery.clone(),
        };
        done(dead.map(letter).collect())
    }

    fn redeliver(&self, task: TaskId, sink: Sink) -> Answered<'_, Redelivered> {
        let mut book = self.book();
        let found = book.deliveries.get_mut(&(task, sink));
        let taken_up = found.and_then(|found| {
            found.delivery = found.delivery.clone().taken_up()?;
            (found.due, found.owner) = (Some(Instant::now()), None);
            Some(Redelivered::TakenUp)
        });
        drop(book);
        done(taken_up.unwrap_or(Redelivered::NotGivenUp))
    }

    fn events(&self, task: TaskId, after: i64, limit: u32) -> Answered<'_, Vec<StoredEvent>> {
        let book = self.book();
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let events = book.tasks.get(&task).map(|task| task.events_after(after).take(most).cloned().collect());
        done(events.unwrap_or_default())
    }

    fn next_delivery(&self, sink: Sink) -> Answered<'_, Option<Duration>> {
        let book = self.book();
        let to_sink = book.deliveries.iter().filter(|((_, other), _)| *other == sink);
        let next = to_sink.filter_map(|(_, found)| found.due).min();
        done(next.map(|due| due.checked_duration_since(Instant::now()).unwrap_or(Duration::ZERO)))
    }

    fn take_back_deliveries(&self, dead: BootId, within: Duration) -> Answered<'_, u64> {
        let is_dead = self.is_dead(&dead);
        let mut book = self.book();
        let now = Instant::now();
        let mut taken = 0;
        for found in book.deliveries.values_mut().filter(|found| is_dead && found.owner.as_ref() == Some(&dead)) {
            if found.due.is_some_and(|due| due > now && due <= now + within) {
                found.due = Some(now);
                taken += 1;
            }
        }
        drop(book);
        done(taken)
    }
}
