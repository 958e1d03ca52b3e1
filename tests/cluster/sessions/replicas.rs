//! The replicas of a run, each with a cable to it from the others and one from it to the database.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use caribou_tests::counter_server::{Bearing, Diary, boot_clock_ns};
use caribou_tests::{Cable, Caribou, Home, Setup, eventually, network, process};
use futures::future::join_all;
use rustix::process::Signal;
use serde_json::Value;
use tokio::time::interval;

use super::balancer::{Balancer, SERVER};
use crate::children::guard_of;
use crate::records::Records;
use crate::scale::Scale;

/// What replicas prove to each other that they belong together by.
const SECRET: &str = "a-secret-of-these-tests-alone-and-long-enough";

/// How often a load balancer looks whether a replica is ready.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How long a life that is over may take to end by itself.
const ENDS: Duration = Duration::from_secs(40);

/// What a run's replicas have in common.
pub(crate) struct Plan {
    /// More lines of `config.yaml`.
    pub(crate) settings: String,
    /// The entry of the server that is called.
    pub(crate) entry: Value,
    pub(crate) program: Option<std::path::PathBuf>,
    /// Where the database really is.
    pub(crate) database: SocketAddr,
    /// Its address by number of life.
    pub(crate) urls: Vec<String>,
    /// What variables the processes are started with besides, by seat, in turn.
    pub(crate) around: Vec<Vec<(String, String)>>,
}

impl Plan {
    /// Replicas on these records whose children write into this diary.
    pub(crate) fn new(scale: &Scale, records: &Records, diary: &Diary, settings: &str, bearing: Bearing) -> Self {
        let Records::Postgres(postgres) = records else { panic!("sessions are shared over PostgreSQL only") };
        Self {
            settings: settings.to_owned(),
            // Hundreds of children share two cores; that none met another is told by locks.
            entry: diary.entry_that_beats(bearing, 100),
            program: scale.program.clone(),
            database: SocketAddr::from((Ipv4Addr::LOCALHOST, postgres.port())),
            urls: (0..200).map(|life| records.url(life)).collect(),
            around: Vec::new(),
        }
    }

    fn setup(&self, life: usize, (at, seat): (usize, &Seat)) -> Setup {
        let port = network::free_port();
        seat.peers.lead_to(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let url = self.urls[life].replace(&self.database.to_string(), &seat.database.address().to_string());
        let settings = format!(
            "cluster:\n  profile: fast\n  listen: 127.0.0.1:{port}\n  advertise: \"{}\"\n{}",
            seat.peers.address(),
            self.settings
        );
        let setup = Setup::new().settings(&settings).server(SERVER, self.entry.clone());
        let setup = setup.variable("CARIBOU_DATABASE_URL", &url).variable("CARIBOU_CLUSTER_SECRET", SECRET);
        let around = self.around.get(at % self.around.len().max(1)).into_iter().flatten();
        let setup = around.fold(setup, |setup, (name, value)| setup.variable(name, value));
        self.program.iter().fold(setup, |setup, program| setup.program(program.clone()))
    }
}

struct Seat {
    caribou: Option<Caribou>,
    /// The life of the replica, as its guard has it.
    boot: String,
    peers: Cable,
    database: Cable,
}

/// Replicas on their seats.
pub(crate) struct Replicas {
    plan: Plan,
    seats: Vec<Seat>,
    lives: usize,
    balancer: Balancer,
    /// Folders with the logs of those that ended, kept if the test fails.
    past: Vec<Home>,
}

impl Replicas {
    /// Starts so many.
    pub(crate) async fn start(count: usize, plan: Plan) -> Self {
        let seat = async || {
            let (peers, database) = (Cable::new().await, Cable::new().await);
            database.lead_to(plan.database);
            Seat { caribou: None, boot: String::new(), peers, database }
        };
        let seats = join_all((0..count).map(|_| seat())).await;
        let balancer = Balancer::new(count);
        let mut replicas = Self { plan, seats, lives: 0, balancer, past: Vec::new() };
        for seat in 0..count {
            replicas.seat_next(seat).await;
        }
        replicas
    }

    /// How many seats there are.
    pub(crate) fn size(&self) -> usize {
        self.seats.len()
    }

    /// The way in.
    pub(crate) fn balancer(&self) -> &Balancer {
        &self.balancer
    }

    /// The one on this seat.
    pub(crate) fn on(&self, seat: usize) -> &Caribou {
        self.seats[seat].caribou.as_ref().expect("somebody is on every seat between two faults")
    }

    /// Where this life is.
    pub(crate) fn seat_of(&self, boot: &str) -> Option<usize> {
        self.seats.iter().position(|seat| seat.boot == boot)
    }

    /// Its life.
    pub(crate) fn boot(&self, seat: usize) -> &str {
        &self.seats[seat].boot
    }

    /// The cable by which the others reach the one on this seat.
    pub(crate) fn peers(&self, seat: usize) -> &Cable {
        &self.seats[seat].peers
    }

    /// Its cable to the database.
    pub(crate) fn database(&self, seat: usize) -> &Cable {
        &self.seats[seat].database
    }

    /// The next life on this seat.
    async fn seat_next(&mut self, seat: usize) {
        self.lives += 1;
        let caribou = Box::pin(self.plan.setup(self.lives, (seat, &self.seats[seat])).start()).await;
        self.balancer.set(seat, Some(caribou.url()));
        self.seats[seat].boot = boot_of(&caribou);
        self.seats[seat].caribou = Some(caribou);
    }

    /// Kills the one on this seat without a warning; when. Its door stays where it was.
    pub(crate) fn kill(&self, seat: usize) -> u64 {
        process::signal(self.on(seat).pid(), Signal::KILL);
        boot_clock_ns()
    }

    /// Freezes it; when. Its children go on.
    pub(crate) fn freeze(&self, seat: usize) -> u64 {
        self.balancer.set(seat, None);
        process::signal(self.on(seat).pid(), Signal::STOP);
        boot_clock_ns()
    }

    /// Lets it go on. Its door stays shut until somebody has taken its place.
    pub(crate) fn thaw(&self, seat: usize) {
        process::signal(self.on(seat).pid(), Signal::CONT);
    }

    /// Waits until the one on this seat has ended, whyever, and starts another.
    pub(crate) async fn replace_when_ended(&mut self, seat: usize) {
        let pid = self.on(seat).pid();
        eventually(ENDS, "the end of a life that is over", async || (!process::is_alive(pid)).then_some(())).await;
        self.put_away(seat).await;
        self.seat_next(seat).await;
    }

    /// Asks it to stop as an orchestrator does, waits until it has, and starts another; how long the stop took. Callers
    /// are sent to it until a look at its readiness says otherwise.
    pub(crate) async fn roll(&mut self, seat: usize) -> Duration {
        let asked = boot_clock_ns();
        let caribou = self.seats[seat].caribou.take().expect("somebody is on every seat between two faults");
        let ready = format!("{}/readyz", caribou.url());
        let looks = async {
            let mut looks = interval(LOOK_EVERY);
            let client = network::unpooled_http_client();
            loop {
                looks.tick().await;
                let is_ready = client.get(&ready).send().await.is_ok_and(|answer| answer.status().is_success());
                if !is_ready {
                    self.balancer.set(seat, None);
                }
            }
        };
        let (status, home) = tokio::select! {
            stopped = caribou.stop() => stopped,
            () = looks => unreachable!("looks go on until it has stopped"),
        };
        let took = Duration::from_nanos(boot_clock_ns() - asked);
        self.past.push(home);
        assert!(status.success(), "{status}");
        self.seat_next(seat).await;
        took
    }

    async fn put_away(&mut self, seat: usize) {
        if let Some(caribou) = self.seats[seat].caribou.take() {
            self.past.push(caribou.kill().await);
        }
    }

    /// Stops all, one after the other, as a whole deployment is taken down.
    pub(crate) async fn stop(mut self) {
        for seat in 0..self.size() {
            if let Some(caribou) = self.seats[seat].caribou.take() {
                self.past.push(caribou.stop().await.1);
            }
        }
    }
}

/// The life of a replica, as the kernel shows it in the environment of its guard.
fn boot_of(caribou: &Caribou) -> String {
    let environment = std::fs::read_to_string(format!("/proc/{}/environ", guard_of(caribou))).unwrap_or_default();
    let boot = environment.split('\0').find_map(|variable| variable.strip_prefix("CARIBOU_BOOT="));
    boot.expect("a guard is told whose it is").to_owned()
}
