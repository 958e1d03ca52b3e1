//! Durable tasks while their replicas are killed (acceptance run A1) and frozen beyond their claims (A2).

use std::time::{Duration, Instant};

use caribou_tests::event_receiver::{Answers, Moods};
use caribou_tests::task_server::Manners;
use caribou_tests::{EventReceiver, Setup, TaskServer};

use crate::fleet::Fleet;
use crate::load::{Heard, Job, SERVERS, jobs, submit_all};
use crate::reckoning::{Reckoning, Witnesses};
use crate::records::Records;
use crate::scale::Scale;
use crate::schedule::Beats;

/// The claims of the runs, `mcp_tasks.lease_seconds`: the shortest there are.
const LEASE: Duration = Duration::from_secs(5);

/// Work and deliveries at the same time in one replica.
pub(crate) const SLOTS: u64 = 16;

/// How long all may take to end after the last fault.
const DRAIN: Duration = Duration::from_secs(30);

/// How long a server takes over a question, so that some are always under way.
const TAKES: Duration = Duration::from_millis(150);

/// Everything around the replicas of a run.
pub(crate) struct Stage {
    pub(crate) scale: Scale,
    pub(crate) records: Records,
    pub(crate) server: TaskServer,
    pub(crate) receiver: EventReceiver,
    began: Instant,
}

impl Stage {
    pub(crate) async fn set(scale: Scale, records: Records, manners: Manners, moods: Moods) -> Self {
        let (server, receiver) = (TaskServer::start(manners).await, EventReceiver::start(moods).await);
        Self { scale, records, server, receiver, began: Instant::now() }
    }

    /// Replicas that share the records, with these settings besides.
    pub(crate) async fn fleet(&self, count: usize, settings: &str, variables: &[(&str, String)]) -> Fleet {
        let (url, look_up) = (self.receiver.url(), self.receiver.look_up_url());
        let settings = format!(
            "{settings}\nmcp_tasks:\n  poll_interval_seconds: {}\n  lease_seconds: {}\n  max_concurrent_polls: {SLOTS}\n  \
             max_poll_backoff_seconds: 2\n  notify:\n    webhook:\n      url: \"{url}\"\n      look_up_url: \"{look_up}\"\n",
            self.scale.of(1, 2),
            LEASE.as_secs()
        );
        let (entry, program) = (self.server.entry(), self.scale.program.clone());
        let variables: Vec<(String, String)> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        // More lives than any run has.
        let urls: Vec<String> = (0..1_000).map(|life| self.records.url(life)).collect();
        Fleet::start(count, move |life| {
            let url = &urls[usize::try_from(life).unwrap()];
            let setup = Setup::new().settings(&settings).variable("CARIBOU_DATABASE_URL", url);
            let setup = SERVERS.into_iter().fold(setup, |setup, name| setup.server(name, entry.clone()));
            let setup = variables.iter().fold(setup, |setup, (name, value)| setup.variable(name, value));
            program.iter().fold(setup, |setup, program| setup.program(program.clone()))
        })
        .await
    }

    /// How much is left to do.
    async fn left(&self) -> u64 {
        let sql = "SELECT (SELECT count(*) FROM mcp_work)
                        + (SELECT count(*) FROM mcp_delivery WHERE due_at IS NOT NULL)";
        self.records.count(sql).await
    }

    /// Waits until nothing is left to do; how long that took.
    pub(crate) async fn drain(&self, within: Duration) -> Duration {
        let began = Instant::now();
        let mut looks = Beats::every(Duration::from_millis(250), within);
        while looks.next().await {
            if self.left().await == 0 {
                return began.elapsed();
            }
        }
        let work = self.records.ask("SELECT CAST(lane AS text) || ' ' || CAST(abandons AS text) || ' ' || CAST(due_at AS text) FROM mcp_work LIMIT 20").await;
        panic!(
            "after {within:?} {} pieces of work are left, such as (lane, abandons, due) {work:?}",
            self.left().await
        );
    }

    /// Asks everybody, and prints the figures.
    pub(crate) async fn reckon(&self, title: &str, callers: &[(Job, Heard)], drained: Duration) -> Reckoning {
        let Self { records, server, receiver, .. } = self;
        let reckoning = Witnesses { records, server, receiver, callers }.reckon().await;
        println!("{title}: {:.0} s, drained in {:.1} s", self.began.elapsed().as_secs_f64(), drained.as_secs_f64());
        println!("{reckoning}");
        let refused = callers.iter().filter_map(|(job, heard)| match heard {
            Heard::Refused(why) => Some((job.n, why)),
            Heard::Task(_) | Heard::Nothing => None,
        });
        for (n, why) in refused.take(5) {
            println!("  {n} was refused: {why}");
        }
        reckoning
    }
}

/// Acceptance run A1: one replica after another is killed, and replaced at once.
async fn kill_replicas(scale: Scale, records: Records, replicas: usize, variables: &[(&str, String)]) {
    let mut chance = scale.chance();
    let lasts = scale.of(Duration::from_secs(24), Duration::from_secs(120));
    let jobs = jobs(scale.of(240, 1_000), lasts, &mut chance);
    let manners = Manners { takes: TAKES, ..Manners::default() };
    let moods = Moods { weights: vec![(1, Answers::Takes), (1, Answers::Launches)], seed: chance.number() };
    let stage = Stage::set(scale, records, manners, moods).await;
    let mut fleet = stage.fleet(replicas, "cluster: {profile: fast}", variables).await;
    let callers = tokio::spawn(submit_all(fleet.doors(), jobs, lasts / 2, chance.part()));
    let mut faults = Beats::every(Duration::from_secs(2), lasts);
    let mut kills: u64 = 0;
    faults.next().await;
    while faults.next().await {
        fleet.kill(usize::try_from(chance.between(0, replicas as u64)).unwrap()).await;
        kills += 1;
    }
    let callers = callers.await.unwrap();
    let drained = stage.drain(DRAIN).await;
    let title = format!("A1, {replicas} replicas, {kills} kills");
    let reckoning = stage.reckon(&title, &callers, drained).await;
    reckoning.assert_safe();
    assert_eq!((reckoning.dead, reckoning.receiver.effects), (0, reckoning.told as u64), "effects are events");
    let (requests, told) = (reckoning.receiver.requests, reckoning.told as u64);
    assert!(requests <= told + SLOTS * kills, "at most one repeat for each slot of whoever was killed");
    assert!(!stage.scale.is_full || requests * 10 <= told * 11, "{requests} requests for {told} events");
    // It has bitten.
    let takeovers = reckoning.takeovers;
    assert!(
        kills >= stage.scale.of(6, 40) && takeovers >= stage.scale.of(8, 50),
        "{kills} kills, {takeovers} takeovers"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_that_are_killed_lose_and_double_no_task() {
    // Durability.md A1; invariants C1, T1 to T4, N1.
    let scale = Scale::read();
    let records = Records::postgres(&scale).await;
    kill_replicas(scale, records, 2, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_replicas_that_are_killed_lose_and_double_no_task() {
    // Durability.md A1; invariants C1, T1 to T4, N1.
    let scale = Scale::read();
    let records = Records::postgres(&scale).await;
    kill_replicas(scale, records, 3, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_on_sqlite_that_is_killed_loses_and_doubles_no_task() {
    // Durability.md A1 for the embedded database.
    let data = caribou_tests::Home::new();
    let variables = [("CARIBOU_DATA_DIR", data.join("data").display().to_string())];
    let scale = Scale::read();
    let records = Records::sqlite(&scale).await;
    kill_replicas(scale, records, 1, &variables).await;
}

/// Acceptance run A2: one replica after another stands still for 1.8 claims and then goes on with what it was at.
#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_stood_still_beyond_their_claims_write_nothing() {
    // Durability.md A2; invariants C1, C2. With the safe profile a replica trusts itself for longer than it stands still,
    // so that only the fence of each write is between it and the records.
    let scale = Scale::read();
    let mut chance = scale.chance();
    let still = LEASE.mul_f64(1.8);
    let lasts = still * scale.of(3, 12) + Duration::from_secs(2);
    let jobs = jobs(scale.of(240, 1_000), lasts, &mut chance);
    let manners = Manners {
        // Long enough that all its slots are taken when a replica is frozen.
        takes: TAKES * 3,
        late_share: 0.004,
        late_by: LEASE.mul_f64(1.2),
        seed: chance.number(),
        hung_share: 0.001,
    };
    let records = Records::postgres(&scale).await;
    let stage = Stage::set(scale, records, manners, Moods::default()).await;
    let fleet = stage.fleet(3, "cluster: {profile: safe}", &[]).await;
    let callers = tokio::spawn(submit_all(fleet.doors(), jobs, lasts / 4, chance.part()));
    let mut faults = Beats::every(still, lasts);
    faults.next().await;
    let (mut frozen, mut pauses): (Option<usize>, u64) = (None, 0);
    while faults.next().await {
        // Never the same one twice in a row: it would stand still for longer than it trusts itself.
        let step = 1 + usize::try_from(chance.between(0, fleet.size() as u64 - 1)).unwrap();
        let seat = (frozen.unwrap_or_default() + step) % fleet.size();
        if let Some(before) = frozen.replace(seat) {
            fleet.thaw(before);
        }
        fleet.freeze(seat);
        pauses += 1;
    }
    if let Some(last) = frozen {
        fleet.thaw(last);
    }
    let callers = callers.await.unwrap();
    let drained = stage.drain(DRAIN).await;
    let refused = fleet.counted("caribou_task_fenced_total", "").await;
    let refused_deliveries = fleet.counted("caribou_task_deliveries_total", "outcome=\"fenced\"").await;
    let title = format!(
        "A2, 3 replicas, {pauses} pauses of {still:?}, {refused} settles refused (deliveries {refused_deliveries})"
    );
    let reckoning = stage.reckon(&title, &callers, drained).await;
    reckoning.assert_safe();
    assert_eq!((reckoning.dead, reckoning.receiver.effects), (0, reckoning.told as u64), "effects are events");
    // It has bitten.
    assert!(pauses >= stage.scale.of(2, 11) && refused >= stage.scale.of(1, 20), "{pauses} pauses, {refused} refused");
    assert!(reckoning.takeovers >= stage.scale.of(1, 20), "{} takeovers", reckoning.takeovers);
}
