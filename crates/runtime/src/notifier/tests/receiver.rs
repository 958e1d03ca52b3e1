//! A receiver that does what a test says. It keeps the promise that receivers are asked for: one run for each key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use caribou_core::notification::Sink;
use caribou_ports::BoxFuture;
use caribou_ports::event_sink::{EventSink, Launched, Run, Told};
use tokio::time::Instant;

/// How a launch is taken.
#[derive(Clone, Debug)]
pub(super) enum Take {
    /// A run is launched, or was, and answered with.
    Launch,
    /// A run is launched, or was, and the answer is lost.
    LaunchSilently,
    /// It is answered so, and nothing is launched.
    Say(Launched),
    /// It is never answered.
    Hang,
    /// The sink breaks off.
    Break,
}

type Taking = Box<dyn Fn(&Told, u32) -> Take + Send>;
type Looking = Box<dyn Fn(&str, u32) -> Run + Send>;

/// What the receiver has seen.
pub(super) struct Seen {
    /// Every launch: its key, its body, and when.
    pub(super) launches: Vec<(String, String, Instant)>,
    /// Times each run was looked up.
    pub(super) looked: HashMap<String, u32>,
    /// The runs that were launched, by key.
    pub(super) runs: HashMap<String, String>,
    pub(super) under_way: usize,
    pub(super) most_under_way: usize,
    take: Taking,
    look: Looking,
}

/// Clones are the same.
#[derive(Clone)]
pub(super) struct Receiver(Arc<Mutex<Seen>>);

impl Receiver {
    /// Answers launches with `take`, told how often the key was asked for before, and look-ups with `look`, told how
    /// often that run was looked up before.
    pub(super) fn new(
        take: impl Fn(&Told, u32) -> Take + Send + 'static,
        look: impl Fn(&str, u32) -> Run + Send + 'static,
    ) -> Self {
        Self(Arc::new(Mutex::new(Seen {
            launches: Vec::new(),
            looked: HashMap::new(),
            runs: HashMap::new(),
            under_way: 0,
            most_under_way: 0,
            take: Box::new(take),
            look: Box::new(look),
        })))
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap()
    }

    /// The keys in the order in which they were launched.
    pub(super) fn keys(&self) -> Vec<String> {
        self.seen().launches.iter().map(|(key, ..)| key.clone()).collect()
    }

    /// Seconds between the launches.
    pub(super) fn waits(&self) -> Vec<u64> {
        let seen = self.seen();
        seen.launches.windows(2).map(|two| (two[1].2 - two[0].2).as_secs()).collect()
    }

    fn taken(&self, told: &Told) -> Take {
        let mut seen = self.seen();
        let key = told.key.to_string();
        let before = seen.launches.iter().filter(|(other, ..)| *other == key).count();
        seen.launches.push((key.clone(), told.body.clone(), Instant::now()));
        let take = (seen.take)(told, u32::try_from(before).unwrap());
        if matches!(take, Take::Launch | Take::LaunchSilently) {
            seen.runs.entry(key.clone()).or_insert_with(|| format!("run of {key}"));
        }
        take
    }
}

/// Counts who is under way, however it ends.
struct UnderWay(Receiver);

impl UnderWay {
    fn begin(receiver: &Receiver) -> Self {
        let mut seen = receiver.seen();
        seen.under_way += 1;
        seen.most_under_way = seen.most_under_way.max(seen.under_way);
        Self(receiver.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Ok(mut seen) = self.0.0.lock() {
            seen.under_way -= 1;
        }
    }
}

impl EventSink for Receiver {
    fn sink(&self) -> Sink {
        Sink::Webhook
    }

    fn launch<'a>(&'a self, told: &'a Told) -> BoxFuture<'a, Launched> {
        Box::pin(async move {
            let _under_way = UnderWay::begin(self);
            let take = self.taken(told);
            tokio::task::yield_now().await;
            match take {
                Take::Launch => Launched::Run { run_id: format!("run of {}", told.key) },
                Take::LaunchSilently => Launched::Unclear("the answer was lost".to_owned()),
                Take::Say(launched) => launched,
                Take::Hang => std::future::pending().await,
                Take::Break => panic!("a sink that breaks off"),
            }
        })
    }

    fn look_up<'a>(&'a self, _: &'a Told, run_id: &'a str) -> BoxFuture<'a, Run> {
        Box::pin(async move {
            let mut seen = self.seen();
            let looked = seen.looked.entry(run_id.to_owned()).or_default();
            *looked += 1;
            let before = *looked - 1;
            (seen.look)(run_id, before)
        })
    }
}
