//! The replicas of a run: processes that are killed, replaced, frozen and thawed.

use std::sync::{Arc, Mutex, PoisonError};

use caribou_tests::seeded::Seeded;
use caribou_tests::{Caribou, Home, Setup, process};
use rustix::process::Signal;

/// The doors that are open; whoever calls picks one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doors(Arc<Mutex<Vec<Option<String>>>>);

impl Doors {
    /// One that is open, or was a moment ago.
    pub(crate) fn pick(&self, chance: &mut Seeded) -> Option<String> {
        let doors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open: Vec<&String> = doors.iter().flatten().collect();
        (!open.is_empty()).then(|| (*chance.pick(&open)).clone())
    }

    fn set(&self, seat: usize, door: Option<&str>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[seat] = door.map(str::to_owned);
    }
}

/// Replicas on their seats.
pub(crate) struct Fleet {
    make: Box<dyn Fn(u32) -> Setup + Send>,
    seats: Vec<Option<Caribou>>,
    lives: u32,
    doors: Doors,
    /// Folders with the logs of those that were killed, kept if the test fails.
    past: Vec<Home>,
}

impl Fleet {
    /// Starts so many; `make` sets up the life with this number.
    pub(crate) async fn start(count: usize, make: impl Fn(u32) -> Setup + Send + 'static) -> Self {
        let doors = Doors(Arc::new(Mutex::new(vec![None; count])));
        let seats = (0..count).map(|_| None).collect();
        let mut fleet = Self { make: Box::new(make), seats, lives: 0, doors, past: Vec::new() };
        for seat in 0..count {
            fleet.replace(seat).await;
        }
        fleet
    }

    /// Where they are reached.
    pub(crate) fn doors(&self) -> Doors {
        self.doors.clone()
    }

    /// How many seats there are.
    pub(crate) fn size(&self) -> usize {
        self.seats.len()
    }

    /// Kills the one on this seat without a warning, and starts another at once.
    pub(crate) async fn kill(&mut self, seat: usize) {
        self.doors.set(seat, None);
        if let Some(caribou) = self.seats[seat].take() {
            self.past.push(caribou.kill().await);
        }
        self.replace(seat).await;
    }

    async fn replace(&mut self, seat: usize) {
        self.lives += 1;
        let caribou = Box::pin((self.make)(self.lives).start()).await;
        self.doors.set(seat, Some(caribou.url()));
        self.seats[seat] = Some(caribou);
    }

    /// The one on this seat.
    pub(crate) fn on(&self, seat: usize) -> &Caribou {
        self.seats[seat].as_ref().expect("somebody is on every seat between two kills")
    }

    /// Freezes the one on this seat. Its children go on.
    pub(crate) fn freeze(&self, seat: usize) {
        self.doors.set(seat, None);
        process::signal(self.on(seat).pid(), Signal::STOP);
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self, seat: usize) {
        process::signal(self.on(seat).pid(), Signal::CONT);
        self.doors.set(seat, Some(self.on(seat).url()));
    }

    /// The sum of a counter over those that live, and over all its labels that hold `label`.
    pub(crate) async fn counted(&self, counter: &str, label: &str) -> u64 {
        let mut sum = 0.0;
        for seat in 0..self.size() {
            let text = self.on(seat).get("/metrics").await.body;
            let values = text.lines().filter(|line| {
                let rest = line.strip_prefix(counter).unwrap_or_default();
                rest.starts_with(['{', ' ']) && rest.contains(label)
            });
            sum += values.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum::<f64>();
        }
        sum as u64
    }
}
