//! Three seats for replicas that share a store, where lives are frozen, cut off and killed.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use caribou_core::credentials::CredentialKey;
use caribou_core::holding::LeaseProfile;
use caribou_core::ids::BootId;
use caribou_ports::store::{Replica, Replicas as _};
use caribou_runtime::{Cluster, Options, Outside, Runtime};
use caribou_store::Memory;
use tokio::time::timeout;

use super::child::{Book, Starter};
use super::guard::Guard;
use super::line::Line;
use super::{Mutant, PROFILE};
use crate::borders::Borders;
use crate::fake::{Fake, server};
use crate::replicas::network::Network;

/// The seats and what they share.
pub(super) struct Stand {
    pub(super) network: Network,
    pub(super) book: Book,
    pub(super) seats: Vec<Seat>,
    /// Whether the clock of the store has jumped ahead.
    pub(super) jumped: Arc<AtomicBool>,
    store: Memory,
    mutant: Option<Mutant>,
    begun: usize,
    /// Lives that were killed: nothing of them crosses their borders any more.
    graves: Vec<Seat>,
}

/// One life in its seat.
pub(super) struct Seat {
    pub(super) boot: String,
    pub(super) runtime: Runtime,
    pub(super) borders: Arc<Borders<Mutant>>,
    /// Between it and the store.
    pub(super) cut: Arc<Borders<()>>,
    guard: Guard,
}

impl Stand {
    pub(super) async fn new(seats: usize, mutant: Option<Mutant>) -> Self {
        let mut stand = Self {
            network: Network::default(),
            book: Book::default(),
            seats: Vec::new(),
            jumped: Arc::default(),
            store: Memory::default(),
            mutant,
            begun: 0,
            graves: Vec::new(),
        };
        for _ in 0..seats {
            let seat = stand.life().await;
            stand.seats.push(seat);
        }
        stand
    }

    /// Begins a life.
    async fn life(&mut self) -> Seat {
        self.begun += 1;
        let boot = format!("life-{}", self.begun);
        let on_record =
            Replica { address: Some(format!("{boot}:1")), ..Replica::alone(boot.as_str().into(), "h", "0") };
        self.store.begin(on_record).await.unwrap();
        let (borders, cut) = (Arc::new(Borders::with(self.mutant)), Arc::new(Borders::with(None)));
        let guard = Guard::new(self.mutant);
        let line =
            Line { store: self.store.clone(), borders: borders.clone(), cut: cut.clone(), jumped: self.jumped.clone() };
        let starter = Starter {
            boot: boot.clone(),
            fake: Arc::new(Fake::default()),
            borders: borders.clone(),
            guard: guard.clone(),
            book: self.book.clone(),
        };
        let cluster = Cluster {
            store: Arc::new(line),
            peers: Arc::new(self.network.clone()),
            credentials: CredentialKey::new([7; 32]),
            vault: None,
            volume: None,
        };
        let outside = Outside {
            cluster: Some(cluster),
            machine: Some(Arc::new(guard.clone())),
            ..Outside::from(Arc::new(starter))
        };
        // Whoever trusts itself for ever never looks again before it acts.
        let believed = match self.mutant {
            Some(Mutant::NoLookAfterWait) => LeaseProfile { lease: Duration::from_secs(86_400), ..PROFILE },
            _ => PROFILE,
        };
        let options = Options { cluster: believed, ..Options::default() };
        let runtime =
            Runtime::start(vec![server("s", |_| ())], options, outside, BootId::from(boot.as_str())).await.unwrap();
        let crossing = borders.clone();
        self.network.plug_behind(&boot, runtime.clone(), move || {
            let borders = crossing.clone();
            Box::pin(async move { borders.cross().await })
        });
        Seat { boot, runtime, borders, cut, guard }
    }

    /// Does what the processes of lives do that are over: ends them, and begins others.
    pub(super) async fn follow(&mut self) {
        for at in 0..self.seats.len() {
            // One that stands still does not know of it yet.
            let is_over = timeout(Duration::ZERO, async {
                self.seats[at].borders.cross().await;
                self.seats[at].runtime.life_over().await
            });
            if is_over.await.is_ok() {
                self.kill(at).await;
            }
        }
    }

    /// Kills the life in this seat, its children with it, and begins another one.
    pub(super) async fn kill(&mut self, at: usize) {
        let next = self.life().await;
        let killed = std::mem::replace(&mut self.seats[at], next);
        killed.borders.crash();
        killed.guard.kill();
        self.network.unplug(&killed.boot);
        self.graves.push(killed);
    }
}
