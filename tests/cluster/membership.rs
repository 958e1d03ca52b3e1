//! Lives of replicas that end without a word, and what the others know of it: the proof of the same machine, the lease
//! of a replica that stands still, and a clean end (durability.md 2.2, 2.3; invariants L1, S3).

use std::time::Duration;

use caribou_tests::counter_server::{Bearing, Diary};
use caribou_tests::{Caribou, Home, Postgres, Setup, eventually, process};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::children::guard_of;
use crate::schedule::moment;

const SOON: Duration = Duration::from_secs(30);

/// How soon the death of a replica on the same machine is on record.
const PROVED: Duration = Duration::from_secs(3);

/// The lease and the trust of the profile `fast`.
const LEASE: Duration = Duration::from_secs(10);
const TRUST: Duration = Duration::from_secs(8);

/// How much later than its trust ends a child may be seen to be gone, on a loaded machine.
const LATE: Duration = Duration::from_millis(1_500);

/// A child that starts a daemon and ignores SIGTERM.
const BEARING: Bearing = Bearing { starts_daemon: true, is_stubborn: true, floods: false };

/// One replica with a session of its own.
struct Seat {
    caribou: Caribou,
    diary: Diary,
    boot: String,
    _home: Home,
}

/// Replicas that share a database.
struct Cluster {
    postgres: Postgres,
    seats: Vec<Seat>,
}

impl Cluster {
    async fn start(count: usize, settings: &str) -> Self {
        let postgres = Postgres::start().await;
        let url = postgres.url("postgres");
        let migrate = Setup::new().variable("CARIBOU_DATABASE_URL", &url).command(&["migrate"]).output();
        let done = tokio::time::timeout(SOON, migrate).await.expect("a migration ends").unwrap();
        assert!(done.status.success(), "migrate: {}", String::from_utf8_lossy(&done.stderr));
        let mut seats = Vec::new();
        for number in 0..count {
            let home = Home::new();
            let diary = Diary::new(&home);
            let setup = Setup::new().settings(settings).variable("CARIBOU_DATABASE_URL", &url);
            let caribou = setup.server("counter", diary.entry(BEARING)).start().await;
            let boot = listed(&caribou).await.into_iter().find(|replica| replica["is_this"] == true);
            let boot = boot.and_then(|replica| Some(replica["boot"].as_str()?.to_owned())).expect("it lists itself");
            let called = caribou.call_in(&format!("t{number}"), "counter_count", json!({ "call_id": "1" })).await;
            assert_eq!(called.status, 200, "{called:?}");
            eventually(SOON, "its child and the daemon of that", async || (diary.alive().len() >= 2).then_some(()))
                .await;
            seats.push(Seat { caribou, diary, boot, _home: home });
        }
        for Seat { caribou, .. } in &seats {
            let knows_all = async || (listed(caribou).await.len() == count).then_some(());
            eventually(SOON, "a replica that knows the others", knows_all).await;
        }
        Self { postgres, seats }
    }

    async fn ask(&self, boot: &str, what: &str) -> String {
        let sql = format!("SELECT ({what})::text FROM replica WHERE boot_id = '{boot}'");
        self.postgres.ask(&sql).await.unwrap().pop().unwrap_or_default()
    }

    async fn is_dead(&self, boot: &str) -> bool {
        self.ask(boot, "state = 3").await == "true"
    }

    /// Waits until this life is on record as ended; how long that took.
    async fn dead(&self, boot: &str, within: Duration) -> Duration {
        let began = Instant::now();
        eventually(within, "a life on record as ended", async || self.is_dead(boot).await.then_some(())).await;
        began.elapsed()
    }

    /// Whether whatever the life held may be taken at once.
    async fn is_beyond_the_gap(&self, boot: &str) -> bool {
        self.ask(boot, "dead_at <= clock_timestamp() - interval '1 second'").await == "true"
    }
}

/// The replicas that this one knows.
async fn listed(caribou: &Caribou) -> Vec<Value> {
    eventually(SOON, "a list of replicas", async || {
        let answer = caribou.get("/api/replicas").await;
        (answer.status == 200).then(|| answer.json()["replicas"].as_array().cloned())?
    })
    .await
}

/// The files of lives in this folder of a replica.
fn locks(home: &Home) -> usize {
    let entries = std::fs::read_dir(home.join("data")).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with("replica-")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_killed_beside_others_is_on_record_as_dead_at_once_and_none_of_its_children_lives() {
    // With the safe profile, in which the lease alone would take half a minute.
    let mut cluster = Cluster::start(3, "cluster: {profile: safe}").await;
    assert_eq!(listed(&cluster.seats[1].caribou).await.len(), 3);
    let Seat { caribou, diary, boot, .. } = cluster.seats.remove(0);
    assert_eq!(locks(caribou.home()), 1);
    let home = caribou.kill().await;
    let took = cluster.dead(&boot, PROVED).await;
    assert_eq!(diary.alive(), Vec::<u32>::new(), "dead on record, and children live");
    assert!(cluster.is_beyond_the_gap(&boot).await, "nothing is left, so nobody needs to wait");
    eventually(PROVED, "its lock to be removed", async || (locks(&home) == 0).then_some(())).await;
    println!("killed: on record after {took:?}");

    // Main and guard at one instant: what their children had started is not swept by either.
    let Seat { caribou, diary, boot, .. } = cluster.seats.remove(0);
    let (main, guard) = (caribou.pid(), guard_of(&caribou));
    for pid in [guard, main] {
        process::signal(pid, Signal::STOP);
    }
    process::signal(guard, Signal::KILL);
    let _home = caribou.kill().await;
    let took = cluster.dead(&boot, PROVED).await;
    assert_eq!(diary.alive(), Vec::<u32>::new(), "dead on record, and children live");
    println!("killed with its guard: on record after {took:?}");

    // The last one serves on.
    let last = &cluster.seats[0];
    eventually(PROVED, "it is alone", async || (listed(&last.caribou).await.len() == 1).then_some(())).await;
    assert_eq!(last.caribou.call_in("t2", "counter_count", json!({ "call_id": "2" })).await.status, 200);
    assert_eq!(last.caribou.get("/readyz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stands_still_has_no_child_any_more_when_it_is_called_dead() {
    // Durability.md 2.3: its guard is told how long it is trusted, and does not stand still with it.
    let cluster = Cluster::start(3, "cluster: {profile: fast}").await;
    let Seat { caribou, diary, boot, .. } = &cluster.seats[0];
    let frozen = Instant::now();
    process::signal(caribou.pid(), Signal::STOP);
    let children =
        eventually(TRUST + LATE, "its children to end", async || diary.alive().is_empty().then(|| frozen.elapsed()))
            .await;
    assert!(!cluster.is_dead(boot).await, "called dead before its children were gone");
    cluster.dead(boot, LEASE * 2).await;
    let dead = frozen.elapsed();
    println!("frozen: children ended after {children:?}, called dead after {dead:?}");
    assert!(dead > LEASE - Duration::from_secs(3), "the lease was waited for: {dead:?}");
    assert!(!cluster.is_beyond_the_gap(boot).await || dead > LEASE, "silence is no proof");
    moment(frozen + LEASE.mul_f64(1.8)).await;
    let pid = caribou.pid();
    process::signal(pid, Signal::CONT);
    // What it held may be somebody else's: it ends, and whoever supervises it starts another life.
    eventually(SOON, "the replica to end by itself", async || (!process::is_alive(pid)).then_some(())).await;
    assert!(caribou.log().contains("declared dead"), "{}", caribou.log());
    assert_eq!(diary.alive(), Vec::<u32>::new(), "it started something after all");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stands_still_for_less_than_its_lease_goes_on() {
    let cluster = Cluster::start(2, "cluster: {profile: fast}").await;
    let Seat { caribou, diary, boot, .. } = &cluster.seats[0];
    process::signal(caribou.pid(), Signal::STOP);
    eventually(TRUST + LATE, "its children to end", async || diary.alive().is_empty().then_some(())).await;
    process::signal(caribou.pid(), Signal::CONT);
    // Nobody called it dead meanwhile: it is trusted again, and its guard starts children again.
    eventually(SOON, "another child", async || {
        let called = caribou.call_in("t0", "counter_count", json!({ "call_id": "2" })).await;
        (called.status == 200).then_some(())
    })
    .await;
    assert!(!diary.alive().is_empty() && !cluster.is_dead(boot).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_asked_to_stop_leaves_nothing_and_says_so() {
    let mut cluster = Cluster::start(3, "cluster: {profile: safe}").await;
    let named = cluster.seats[1].caribou.url().to_owned();
    let shown = Setup::new().command(&["replicas", "--server", &named]).output().await.unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert_eq!((shown.lines().count(), shown.matches("(this one)").count()), (4, 1), "{shown}");
    let Seat { caribou, diary, boot, .. } = cluster.seats.remove(0);
    assert!(shown.contains(&boot), "{shown}");
    let began = Instant::now();
    let (status, home) = caribou.stop().await;
    println!("stopped after {:?}", began.elapsed());
    assert!(status.success(), "{status}");
    assert!(cluster.is_dead(&boot).await && cluster.is_beyond_the_gap(&boot).await);
    assert_eq!((diary.alive(), locks(&home)), (Vec::new(), 0));
    for (table, owner) in [("mcp_session", "owner"), ("mcp_work", "claim_owner"), ("mcp_delivery", "claim_owner")] {
        let left = format!("SELECT count(*)::text FROM {table} WHERE {owner} = '{boot}'");
        assert_eq!(cluster.postgres.ask(&left).await.unwrap(), ["0"], "{table}");
    }
    let other = &cluster.seats[0].caribou;
    eventually(PROVED, "the others to know", async || (listed(other).await.len() == 2).then_some(())).await;
}
