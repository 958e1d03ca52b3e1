//! Request ids and who waits for them.
//!
//! Owns the table of pending requests of one shared channel (a child's pipes, an HTTP+SSE stream). Our ids are whole
//! numbers from 1. The waiter is registered before the first byte is written, the first answer wins, and an answer
//! that names nobody is dropped: it is never given to another call. When the channel ends, every waiter is told at
//! once. What servers do wrong here is told as an oddity. Does not write anything.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caribou_ports::mcp::{CallError, Disconnect, EventSink, Oddity, Progress, SessionEvent};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::progress::ProgressRoute;
use crate::parked::{Asker, Asking};

/// The id in an answer of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseId {
    /// A whole number, as we send them.
    Ours(u64),
    /// A whole number written as a string.
    OursAsText(u64),
    /// `null`, or none at all.
    Null,
    /// Something we never send.
    Foreign,
}

impl ResponseId {
    /// Reads the member `id`.
    pub(crate) fn read(id: Option<&RawValue>) -> Self {
        let Some(text) = id.map(RawValue::get) else { return Self::Null };
        let quoted = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        match (text, quoted) {
            ("null", _) => Self::Null,
            (_, Some(inner)) => inner.parse().map_or(Self::Foreign, Self::OursAsText),
            (number, None) => number.parse().map_or(Self::Foreign, Self::Ours),
        }
    }
}

/// The outcome of one request.
pub(crate) type Outcome = Result<Box<RawValue>, CallError>;

/// The requests of one channel that wait for their answer.
pub(crate) struct Pending {
    /// Told of oddities.
    events: EventSink,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    last_id: u64,
    waiting: HashMap<u64, Waiter>,
    /// Why no request is accepted any more, while it is not known yet how the channel ended.
    ending: Option<&'static str>,
    ended: Option<Disconnect>,
}

struct Waiter {
    answer: oneshot::Sender<Outcome>,
    progress: Option<ProgressRoute>,
    asker: Asker,
}

/// One registered request. Dropping it forgets the request.
pub(crate) struct Ticket {
    id: u64,
    pending: Arc<Pending>,
    answer: oneshot::Receiver<Outcome>,
}

impl Pending {
    /// An empty table, whose oddities `events` hears.
    pub(crate) fn new(events: EventSink) -> Arc<Self> {
        Arc::new(Self { events, table: Mutex::default() })
    }

    /// Registers a request in the middle of which nothing is asked, and gives it its id.
    ///
    /// # Errors
    /// The channel has ended, or is ending.
    pub(crate) fn register(self: &Arc<Self>, progress: Option<ProgressRoute>) -> Result<Ticket, Disconnect> {
        self.register_call(progress, Asker::None)
    }

    /// Registers a request and gives it its id.
    ///
    /// # Errors
    /// The channel has ended, or is ending.
    pub(crate) fn register_call(
        self: &Arc<Self>,
        progress: Option<ProgressRoute>,
        asker: Asker,
    ) -> Result<Ticket, Disconnect> {
        let mut table = self.table();
        if let Some(disconnect) = &table.ended {
            return Err(disconnect.clone());
        }
        if let Some(reason) = table.ending {
            return Err(Disconnect { reason: reason.to_owned(), exit: None, stderr: String::new() });
        }
        table.last_id += 1;
        let id = table.last_id;
        let (sender, answer) = oneshot::channel();
        table.waiting.insert(id, Waiter { answer: sender, progress, asker });
        Ok(Ticket { id, pending: Arc::clone(self), answer })
    }

    /// Gives an answer to the request it names; drops it when it names none.
    pub(crate) fn settle(&self, id: ResponseId, outcome: Result<&RawValue, CallError>) {
        let (waiter, oddity) = self.table().claim(id, outcome.is_err());
        if let Some(oddity) = oddity {
            (self.events)(SessionEvent::Oddity(oddity));
        }
        let Some(waiter) = waiter else { return };
        // A waiter that has just gone away needs no answer.
        let _ = waiter.answer.send(outcome.map(RawValue::to_owned));
    }

    /// Hands a progress report to the request whose token it names; reports for nobody are dropped.
    pub(crate) fn progress(&self, token: u64, report: &RawValue) {
        let table = self.table();
        let routes = table.waiting.values().filter_map(|waiter| waiter.progress.as_ref());
        let Some(sink) = routes.into_iter().find(|route| route.token == token).map(|route| Arc::clone(&route.sink))
        else {
            return;
        };
        drop(table);
        sink(Progress::Progress(Arc::from(report.to_owned())));
    }

    /// Hands a log message to the one request that listens, if it is certain whose it is (mcp.md §14.8).
    pub(crate) fn message(&self, params: &RawValue) {
        let table = self.table();
        // A request that only listens writes no log.
        let is_listener = |waiter: &&Waiter| waiter.progress.as_ref().is_some_and(ProgressRoute::listens);
        let mut waiters = table.waiting.values().filter(|waiter| !is_listener(waiter));
        let (Some(only), None) = (waiters.next(), waiters.next()) else { return };
        let Some(sink) = only.progress.as_ref().map(|route| Arc::clone(&route.sink)) else { return };
        drop(table);
        sink(Progress::Message(Arc::from(params.to_owned())));
    }

    /// The call that a question of the server surely belongs to (mcp.md 14.4): the only one that runs. Calls that wait for
    /// their callers are not what the server works on; they count where nothing runs, and where they are another
    /// principal's, who must not see the question (invariant P1).
    pub(crate) fn asked_of(&self) -> Option<Arc<Asking>> {
        let table = self.table();
        let (mut running, mut parked) = (Vec::new(), Vec::new());
        for waiter in table.waiting.values() {
            match &waiter.asker {
                Asker::None => {}
                Asker::Deaf => running.push(None),
                Asker::Open(asking) if asking.is_parked() => parked.push(asking),
                Asker::Open(asking) => running.push(Some(asking)),
            }
        }
        let asked = match (running.as_slice(), parked.as_slice()) {
            ([Some(only)], _) => only,
            ([], [only]) => only,
            _ => return None,
        };
        parked.iter().all(|other| other.principal() == asked.principal()).then(|| Arc::clone(asked))
    }

    /// The server takes a request of its back.
    pub(crate) fn taken_back(&self, id: &RawValue) {
        for waiter in self.table().waiting.values() {
            if let Asker::Open(asking) = &waiter.asker {
                asking.taken_back(id);
            }
        }
    }

    /// Hands what belongs to a subscription to the request of this id, which listens to it; to nobody when there is none.
    pub(crate) fn of_subscription(&self, id: u64, report: Progress) {
        let table = self.table();
        let route = table.waiting.get(&id).and_then(|waiter| waiter.progress.clone());
        drop(table);
        if let Some(route) = route.filter(ProgressRoute::listens) {
            (route.sink)(report);
        }
    }

    /// Refuses later requests: nobody reads them any more. Those that wait may still be answered.
    pub(crate) fn ending(&self, reason: &'static str) {
        self.table().ending.get_or_insert(reason);
    }

    /// Ends the table: every waiter is told now, and every later request is refused. The first end counts.
    pub(crate) fn end(&self, disconnect: Disconnect) {
        let mut table = self.table();
        table.ended.get_or_insert(disconnect);
        // Dropping the senders is what tells the waiters.
        let waiting = std::mem::take(&mut table.waiting);
        drop(table);
        drop(waiting);
    }

    /// How the channel ended, if it has.
    pub(crate) fn ended(&self) -> Option<Disconnect> {
        self.table().ended.clone()
    }

    /// The table is consistent between any two statements, so a panic elsewhere does not spoil it.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Takes the waiter that an answer with this id is for, and says what is odd about the answer.
    fn claim(&mut self, id: ResponseId, is_error: bool) -> (Option<Waiter>, Option<Oddity>) {
        let named = match id {
            ResponseId::Ours(id) | ResponseId::OursAsText(id) => Some(id),
            // Nobody else can be meant by an error without an id.
            ResponseId::Null if is_error && self.waiting.len() == 1 => self.waiting.keys().next().copied(),
            ResponseId::Null | ResponseId::Foreign => None,
        };
        let waiter = named.and_then(|id| self.waiting.remove(&id));
        let oddity = match (&waiter, id, named) {
            (Some(_), ResponseId::OursAsText(_), _) => Some(Oddity::TextId),
            (Some(_), ..) => None,
            (None, _, Some(id)) if (1..=self.last_id).contains(&id) => Some(Oddity::LateAnswer),
            (None, ..) => Some(Oddity::UnknownAnswer),
        };
        (waiter, oddity)
    }
}

impl Ticket {
    /// The id to send.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Waits for the answer; `None` when the channel ended first.
    pub(crate) async fn answer(&mut self) -> Option<Outcome> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.pending.table().waiting.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).expect("valid JSON")
    }

    /// A table, and the oddities it tells of.
    fn table() -> (Arc<Pending>, Arc<Mutex<Vec<Oddity>>>) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let events = Arc::clone(&told);
        let pending = Pending::new(Arc::new(move |event| {
            let SessionEvent::Oddity(oddity) = event else { panic!("no oddity: {event:?}") };
            events.lock().unwrap().push(oddity);
        }));
        (pending, told)
    }

    fn ended() -> Disconnect {
        Disconnect { reason: "gone".to_owned(), exit: None, stderr: String::new() }
    }

    fn refused() -> CallError {
        CallError::Malformed("no".to_owned())
    }

    #[test]
    fn ids_of_every_kind_are_read() {
        let read = |json: &str| ResponseId::read(Some(&raw(json)));
        assert_eq!(read("7"), ResponseId::Ours(7));
        assert_eq!(read("\"7\""), ResponseId::OursAsText(7));
        assert_eq!(read("null"), ResponseId::Null);
        assert_eq!(ResponseId::read(None), ResponseId::Null);
        for foreign in ["-1", "1.5", "\"a\"", "{}", "18446744073709551616"] {
            assert_eq!(read(foreign), ResponseId::Foreign, "{foreign}");
        }
    }

    #[tokio::test]
    async fn the_first_answer_wins_and_later_ones_are_dropped() {
        let (pending, told) = table();
        let mut ticket = pending.register(None).expect("open");
        pending.settle(ResponseId::Ours(ticket.id()), Ok(&raw("1")));
        pending.settle(ResponseId::Ours(ticket.id()), Ok(&raw("2")));
        let answer = ticket.answer().await.expect("answered").expect("a result");
        assert_eq!(answer.get(), "1");
        assert_eq!(*told.lock().unwrap(), [Oddity::LateAnswer]);
    }

    #[tokio::test]
    async fn the_string_form_of_an_id_is_accepted_and_counted() {
        let (pending, told) = table();
        let mut ticket = pending.register(None).expect("open");
        pending.settle(ResponseId::OursAsText(ticket.id()), Ok(&raw("{}")));
        assert!(ticket.answer().await.expect("answered").is_ok());
        assert_eq!(*told.lock().unwrap(), [Oddity::TextId]);
    }

    #[tokio::test]
    async fn an_answer_that_names_nobody_is_given_to_nobody() {
        let (pending, told) = table();
        let _ticket = pending.register(None).expect("open");
        pending.settle(ResponseId::Ours(0), Ok(&raw("{}")));
        pending.settle(ResponseId::Ours(1_001), Ok(&raw("{}")));
        pending.settle(ResponseId::Foreign, Ok(&raw("{}")));
        pending.settle(ResponseId::Null, Ok(&raw("{}")));
        assert_eq!(pending.table().waiting.len(), 1);
        assert_eq!(*told.lock().unwrap(), [Oddity::UnknownAnswer; 4]);
    }

    #[tokio::test]
    async fn an_error_without_an_id_is_given_to_the_only_request_and_to_none_of_two() {
        let (pending, _) = table();
        let (mut first, second) = (pending.register(None).expect("open"), pending.register(None).expect("open"));
        pending.settle(ResponseId::Null, Err(refused()));
        assert_eq!(pending.table().waiting.len(), 2);
        drop(second);
        pending.settle(ResponseId::Null, Err(refused()));
        assert!(first.answer().await.expect("answered").is_err());
    }

    #[tokio::test]
    async fn the_end_tells_every_waiter_and_refuses_later_requests() {
        let (pending, _) = table();
        let mut ticket = pending.register(None).expect("open");
        pending.end(ended());
        pending.end(Disconnect { reason: "again".to_owned(), ..ended() });
        assert!(ticket.answer().await.is_none());
        assert_eq!(pending.register(None).err(), Some(ended()));
    }

    #[tokio::test]
    async fn a_channel_that_is_ending_refuses_requests_and_still_answers_those_that_wait() {
        let (pending, _) = table();
        let mut ticket = pending.register(None).expect("open");
        pending.ending("closed");
        assert_eq!(pending.register(None).err().map(|refused| refused.reason).as_deref(), Some("closed"));
        pending.settle(ResponseId::Ours(ticket.id()), Ok(&raw("1")));
        assert!(ticket.answer().await.expect("answered").is_ok());
    }

    #[tokio::test]
    async fn progress_reaches_only_its_own_request_and_stops_with_the_answer() {
        let (pending, _) = table();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let listen = |token| {
            let heard = Arc::clone(&heard);
            let sink = Arc::new(move |progress| {
                let Progress::Progress(report) = progress else { panic!("no progress") };
                heard.lock().unwrap().push((token, report.get().to_owned()));
            });
            pending.register(Some(ProgressRoute { token, sink })).expect("open")
        };
        let (first, _second) = (listen(1), listen(2));
        pending.progress(2, &raw("{}"));
        pending.progress(99, &raw("{}"));
        pending.settle(ResponseId::Ours(first.id()), Ok(&raw("{}")));
        pending.progress(1, &raw("{}"));
        assert_eq!(*heard.lock().unwrap(), [(2, "{}".to_owned())]);
    }

    #[test]
    fn what_belongs_to_a_subscription_goes_to_the_request_that_listens_and_log_messages_never_do() {
        let pending = Pending::new(Arc::new(|_| {}));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let sink = |who: &'static str| -> caribou_ports::mcp::ProgressSink {
            let heard = heard.clone();
            Arc::new(move |report| heard.lock().unwrap().push((who, format!("{report:?}").contains("Message"))))
        };
        let listens = pending.register(Some(ProgressRoute::listener(sink("listener")))).unwrap();
        pending.message(&raw("{}"));
        assert!(heard.lock().unwrap().is_empty(), "nobody writes a log");
        let calls = pending.register(Some(ProgressRoute { token: 1, sink: sink("call") })).unwrap();
        pending.message(&raw("{}"));
        pending.of_subscription(listens.id(), Progress::Message(raw("{}").into()));
        pending.of_subscription(calls.id(), Progress::Message(raw("{}").into()));
        pending.of_subscription(99, Progress::Progress(raw("{}").into()));
        assert_eq!(*heard.lock().unwrap(), [("call", true), ("listener", true)]);
    }
}
