//! All watchers of one replica, as one sink.
//!
//! One lock for all of them, held for the time of a look, never across a wait. A wait ends with the answer, with the
//! watcher, or by being dropped, which the notifier does after half a claim.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use caribou_core::bounds::{MAX_LATE_ANSWERS, MAX_TASK_WATCHERS};
use caribou_core::ids::UserId;
use caribou_core::notification::{Audience, Sink};
use caribou_ports::BoxFuture;
use caribou_ports::event_sink::{EventSink, Launched, Room, Run, Told};
use tokio::sync::{Notify, oneshot};

use super::answer::{Question, WatchAnswer};
use super::seat::{Seat, TaskWatch, WatchedEvent};
use crate::notifier::Notifier;

/// The watchers. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Watchers(Arc<Hub>);

#[derive(Default)]
struct Hub {
    seats: Mutex<Seats>,
    /// Who looks for events when somebody came or has room again.
    notifier: OnceLock<Notifier>,
}

#[derive(Default)]
pub(super) struct Seats {
    all: Vec<Seat>,
    /// Seats that were ever taken: the name of the next.
    taken: u64,
}

/// What came of asking for a watcher.
enum Handed {
    /// One has answered before.
    Answered(WatchAnswer),
    /// The seat of this name has it.
    To(u64, oneshot::Receiver<WatchAnswer>),
    /// None has room.
    Nobody,
}

impl Watchers {
    /// Who is told that it is worth looking.
    pub(crate) fn wake(&self, notifier: Notifier) {
        let _ = self.0.notifier.set(notifier);
    }

    /// Seats a watcher with at most `window` events unacknowledged. `None` = all seats are taken.
    pub(crate) fn seat(&self, audience: Audience, window: usize) -> Option<TaskWatch> {
        let mut seats = self.seats();
        if seats.all.len() >= MAX_TASK_WATCHERS {
            return None;
        }
        seats.taken += 1;
        let (name, bell) = (seats.taken, Arc::new(Notify::new()));
        seats.all.push(Seat::new(name, audience, window, bell.clone()));
        drop(seats);
        self.look();
        Some(TaskWatch::new(self.clone(), name, bell))
    }

    pub(super) fn seats(&self) -> MutexGuard<'_, Seats> {
        self.0.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There may be room for what waits.
    pub(super) fn look(&self) {
        if let Some(notifier) = self.0.notifier.get() {
            notifier.hint();
        }
    }

    /// Asks one watcher. `None` = nobody was there, and nothing was sent.
    async fn ask(&self, event: WatchedEvent) -> Option<WatchAnswer> {
        let key = event.key();
        let handed = self.seats().hand_over(event);
        match handed {
            Handed::Answered(answer) => Some(answer),
            Handed::Nobody => None,
            Handed::To(seat, answer) => {
                let _waiting = Waiting { watchers: self, seat, key };
                answer.await.ok()
            }
        }
    }
}

/// Somebody waits for the answer of a seat. Dropped, nobody does.
struct Waiting<'w> {
    watchers: &'w Watchers,
    seat: u64,
    key: String,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(seat) = self.watchers.seats().named(self.seat) {
            seat.nobody_waits(&self.key);
        }
    }
}

impl Seats {
    /// The seat of this name, if it is taken still.
    pub(super) fn named(&mut self, name: u64) -> Option<&mut Seat> {
        self.all.iter_mut().find(|seat| seat.name() == name)
    }

    pub(super) fn remove(&mut self, name: u64) -> Option<Seat> {
        let at = self.all.iter().position(|seat| seat.name() == name)?;
        Some(self.all.swap_remove(at))
    }

    /// Gives an event to the watcher that has the most room for it, or again to the one that has it already.
    fn hand_over(&mut self, event: WatchedEvent) -> Handed {
        let (key, question, user) = (event.key(), event.question(), event.told.scope.user.clone());
        let late = self.of(&user).find_map(|seat| seat.take_late(&key, question));
        if let Some(answer) = late {
            return Handed::Answered(answer);
        }
        let best = self.of(&user).filter(|seat| seat.takes(&key)).max_by_key(|seat| seat.room());
        match best {
            Some(seat) => Handed::To(seat.name(), seat.give(event)),
            None => Handed::Nobody,
        }
    }

    fn of<'s>(&'s mut self, user: &UserId) -> impl Iterator<Item = &'s mut Seat> {
        self.all.iter_mut().filter(|seat| seat.audience().covers(user))
    }

    fn room(&self) -> Room {
        let open = self.all.iter().filter(|seat| !seat.is_leaving());
        let at_once = open.clone().map(Seat::attempts).sum();
        let audiences = open.filter(|seat| seat.room() > 0).map(Seat::audience);
        let of = audiences.fold(Audience::Users(Vec::new()), Audience::or);
        let is_nobody = of == Audience::Users(Vec::new());
        Room::For(if is_nobody { 0 } else { at_once }, of)
    }
}

impl EventSink for Watchers {
    fn sink(&self) -> Sink {
        Sink::Stream
    }

    fn room(&self) -> Room {
        self.seats().room()
    }

    fn launch<'a>(&'a self, told: &'a Told) -> BoxFuture<'a, Launched> {
        Box::pin(async move {
            let event = WatchedEvent { told: told.clone(), launched_run: None };
            self.ask(event).await.map_or(Launched::NobodyThere, WatchAnswer::launched)
        })
    }

    fn look_up<'a>(&'a self, told: &'a Told, run_id: &'a str) -> BoxFuture<'a, Run> {
        Box::pin(async move {
            let event = WatchedEvent { told: told.clone(), launched_run: Some(run_id.to_owned()) };
            self.ask(event).await.map_or(Run::NobodyThere, WatchAnswer::run)
        })
    }
}

/// Answers that nobody waited for, the newest last.
#[derive(Default)]
pub(super) struct LateAnswers(VecDeque<(String, WatchAnswer)>);

impl LateAnswers {
    pub(super) fn keep(&mut self, key: String, answer: WatchAnswer) {
        self.0.retain(|(other, kept)| *other != key || kept.question() != answer.question());
        if self.0.len() >= MAX_LATE_ANSWERS {
            self.0.pop_front();
        }
        self.0.push_back((key, answer));
    }

    pub(super) fn take(&mut self, key: &str, question: Question) -> Option<WatchAnswer> {
        let at = self.0.iter().position(|(other, answer)| other == key && answer.question() == question)?;
        self.0.remove(at).map(|(_, answer)| answer)
    }
}
