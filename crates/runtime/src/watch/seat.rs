//! One watcher: what it was given, and what it has answered.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use caribou_core::notification::Audience;
use caribou_ports::event_sink::{Launched, Run, Told};
use tokio::sync::{Notify, oneshot};

use super::answer::{Question, WatchAnswer};
use super::hub::{LateAnswers, Watchers};

/// The longest key of ours; anything longer names nothing.
const LONGEST_KEY: usize = 128;

/// What a watcher is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedEvent {
    /// The event, and the key to acknowledge it by.
    pub told: Told,
    /// `None` = it is to be taken. Else it was taken under this key, by this run: the question is how that run is.
    pub launched_run: Option<String>,
}

impl WatchedEvent {
    pub(super) fn key(&self) -> String {
        self.told.key.to_string()
    }

    pub(super) fn question(&self) -> Question {
        if self.launched_run.is_some() { Question::LookUp } else { Question::Launch }
    }
}

/// What the hub holds of one watcher.
pub(super) struct Seat {
    name: u64,
    audience: Audience,
    window: usize,
    is_leaving: bool,
    /// Rings when there is something to fetch, or nothing will come any more.
    bell: Arc<Notify>,
    /// Not fetched yet.
    queue: VecDeque<WatchedEvent>,
    /// Not answered yet, those in the queue included: at most `window`.
    held: HashMap<String, Held>,
    late: LateAnswers,
}

/// Something that is not answered yet.
struct Held {
    question: Question,
    is_sent: bool,
    /// `None` = nobody waits any more; it keeps its place, because the watcher has it.
    waiting: Option<oneshot::Sender<WatchAnswer>>,
}

impl Seat {
    pub(super) fn new(name: u64, audience: Audience, window: usize, bell: Arc<Notify>) -> Self {
        let (queue, held, late) = (VecDeque::new(), HashMap::new(), LateAnswers::default());
        Self { name, audience, window, is_leaving: false, bell, queue, held, late }
    }

    pub(super) fn name(&self) -> u64 {
        self.name
    }

    pub(super) fn audience(&self) -> &Audience {
        &self.audience
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    /// How many events more it takes.
    pub(super) fn room(&self) -> usize {
        self.window.saturating_sub(self.held.len())
    }

    /// How many attempts may wait for it at once.
    pub(super) fn attempts(&self) -> usize {
        let forgotten = self.held.values().filter(|held| held.waiting.is_none()).count();
        self.window.saturating_sub(forgotten)
    }

    /// Whether it may be given what has this key. What it has already takes no further room.
    pub(super) fn takes(&self, key: &str) -> bool {
        !self.is_leaving && (self.room() > 0 || self.held.contains_key(key))
    }

    pub(super) fn give(&mut self, event: WatchedEvent) -> oneshot::Receiver<WatchAnswer> {
        let (waiting, answer) = oneshot::channel();
        let held = Held { question: event.question(), is_sent: false, waiting: Some(waiting) };
        let was_sent = self.held.insert(event.key(), held).is_some_and(|before| before.is_sent);
        // The watcher may have seen it before, so that nobody knows what becomes of it when the stream ends now.
        if let Some(held) = self.held.get_mut(&event.key()) {
            held.is_sent = was_sent;
        }
        self.queue.push_back(event);
        self.bell.notify_one();
        answer
    }

    /// What it has answered when nobody waited.
    pub(super) fn take_late(&mut self, key: &str, question: Question) -> Option<WatchAnswer> {
        self.late.take(key, question)
    }

    /// Nobody waits for the answer to this key any more. What was not fetched is taken back.
    pub(super) fn nobody_waits(&mut self, key: &str) {
        let Some(held) = self.held.get_mut(key) else { return };
        // Another attempt may be at the same key by now.
        if held.waiting.as_ref().is_some_and(|waiting| !waiting.is_closed()) {
            return;
        }
        held.waiting = None;
        let is_queued = self.queue.iter().any(|event| event.key() == key);
        self.queue.retain(|event| event.key() != key);
        if is_queued && !held.is_sent {
            self.held.remove(key);
        }
    }

    /// Takes an answer. Whether that made room which nobody waits at.
    fn answered(&mut self, key: &str, answer: WatchAnswer) -> bool {
        let held = self.held.remove(key);
        self.queue.retain(|event| event.key() != key);
        let was_forgotten = held.as_ref().is_some_and(|held| held.waiting.is_none());
        let question = held.as_ref().map(|held| held.question);
        // How a run ended may be said before it is asked.
        let is_early = question == Some(Question::Launch) && answer.question() == Question::LookUp;
        let is_news = held.is_none() && answer.is_final();
        if is_early || is_news || was_forgotten {
            self.late.keep(key.to_owned(), answer.clone());
        }
        if let Some(waiting) = held.and_then(|held| held.waiting) {
            let _ = waiting.send(answer);
        }
        self.bell.notify_one();
        was_forgotten
    }

    /// Ends it: what was sent is unclear, what was not is given back.
    fn over(self) {
        for held in self.held.into_values().filter(|held| held.is_sent) {
            let unclear = "the stream ended before the event was acknowledged";
            let answer = match held.question {
                Question::Launch => WatchAnswer::Launch(Launched::Unclear(unclear.to_owned())),
                // Asking has no effect: it is asked again.
                Question::LookUp => WatchAnswer::Launch(Launched::NobodyThere),
            };
            if let Some(waiting) = held.waiting {
                let _ = waiting.send(answer);
            }
        }
    }
}

/// One watcher's side: what it is asked. Dropping it gives its seat back, and what it has not acknowledged with it.
pub struct TaskWatch {
    watchers: Watchers,
    name: u64,
    bell: Arc<Notify>,
}

impl TaskWatch {
    pub(super) fn new(watchers: Watchers, name: u64, bell: Arc<Notify>) -> Self {
        Self { watchers, name, bell }
    }

    /// The next event, or question; `None` = it was let go, and everything is acknowledged. May be dropped and asked for
    /// again at any point without losing any.
    pub async fn next(&mut self) -> Option<WatchedEvent> {
        loop {
            {
                let mut seats = self.watchers.seats();
                let seat = seats.named(self.name)?;
                if let Some(event) = seat.queue.pop_front() {
                    if let Some(held) = seat.held.get_mut(&event.key()) {
                        held.is_sent = true;
                    }
                    return Some(event);
                }
                if seat.is_leaving && seat.held.is_empty() {
                    return None;
                }
            }
            self.bell.notified().await;
        }
    }

    /// The way for its answers.
    pub fn answers(&self) -> TaskAnswers {
        TaskAnswers { watchers: self.watchers.clone(), name: self.name }
    }

    /// Lets it go: it is asked nothing more, and may still acknowledge what it has.
    pub fn leave(&self) {
        let given_back = self.watchers.seats().named(self.name).map(|seat| {
            seat.is_leaving = true;
            for event in std::mem::take(&mut seat.queue) {
                // Whoever waits hears that nobody was there.
                if seat.held.get(&event.key()).is_some_and(|held| !held.is_sent) {
                    seat.held.remove(&event.key());
                }
            }
            seat.bell.notify_one();
        });
        if given_back.is_some() {
            self.watchers.look();
        }
    }
}

impl Drop for TaskWatch {
    fn drop(&mut self) {
        let seat = self.watchers.seats().remove(self.name);
        if let Some(seat) = seat {
            seat.over();
        }
    }
}

/// The way for the answers of one watcher.
#[derive(Clone)]
pub struct TaskAnswers {
    watchers: Watchers,
    name: u64,
}

impl TaskAnswers {
    /// Takes an acknowledgement. A key that names nothing the watcher has is kept for a while: it may have come too late,
    /// or tell how a run ended before that is asked. Anything else is without effect.
    pub fn answer(&self, key: &str, answer: WatchAnswer) {
        if key.len() > LONGEST_KEY || matches!(answer, WatchAnswer::Launch(Launched::NobodyThere)) {
            return;
        }
        if matches!(answer, WatchAnswer::Run { run: Run::NobodyThere, .. }) {
            return;
        }
        let made_room = self.watchers.seats().named(self.name).is_some_and(|seat| seat.answered(key, answer));
        if made_room {
            self.watchers.look();
        }
    }
}
