//! Resets and changes of the configuration over several processes, while Redis dies and PostgreSQL is away (durability.md
//! §8, A9; invariants G1, G2).
//!
//! The server that is called sees by which replica, and under which revision of the configuration; before it is called
//! by a replica that has reset, it is asked for its tools anew.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou_tests::fake::Seen;
use caribou_tests::seeded::Seeded;
use caribou_tests::{HttpFake, Postgres, Redis, Setup, eventually};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fleet::Fleet;
use crate::records::Records;
use crate::scale::Scale;
use crate::schedule::Beats;

/// How long what was opened under another generation may serve new calls without Redis (durability.md §4).
const BOUND: Duration = Duration::from_millis(1_500);

/// How long a replica may take to have its connections again once PostgreSQL is back.
const RECONNECTED: Duration = Duration::from_secs(3);

const SOON: Duration = Duration::from_secs(30);

const REPLICAS: usize = 3;

/// A call that was answered.
struct Called {
    number: u64,
    seat: usize,
    started: Instant,
}

/// A reset or a change that is on record.
struct Moved {
    /// The revision that was written; `None` = a reset.
    revision: Option<u64>,
    /// What the server had seen before it was asked for.
    seen_before: usize,
    /// From then on it holds everywhere.
    holds_from: Instant,
}

struct Stand {
    fleet: Fleet,
    fake: HttpFake,
}

/// What replicas share: taken by whoever does harm.
type Servers = Arc<tokio::sync::Mutex<(Postgres, Redis)>>;

/// What harm was done.
#[derive(Default)]
struct Harm {
    redis_losses: u64,
    /// When PostgreSQL was away.
    outages: Vec<(Instant, Instant)>,
}

impl Stand {
    async fn new(scale: &Scale) -> (Self, Servers) {
        let Records::Postgres(postgres) = Records::postgres(scale).await else { panic!("a PostgreSQL") };
        let redis = Redis::start().await;
        // Without session state: each replica asks it by itself.
        let fake = HttpFake::start(json!({ "eras": "modern", "calls": { "t": [{ "text": "done" }] } })).await;
        let (database, cache, entry) = (postgres.url("postgres"), redis.url(), entry(&fake, 0));
        let program = scale.program.clone();
        let fleet = Fleet::start(REPLICAS, move |life| {
            let setup = Setup::new().server("fake", entry.clone()).settings("audit:\n  enabled: false\n");
            let setup = setup.variable("CARIBOU_DATABASE_URL", &database).variable("CARIBOU_REDIS_URL", &cache);
            let setup = setup.variable("CARIBOU_CONFIG_SOURCE", "database").variable("REPLICA", &format!("r{life}"));
            program.iter().fold(setup, |setup, program| setup.program(program.clone()))
        })
        .await;
        (Self { fleet, fake }, Arc::new(tokio::sync::Mutex::new((postgres, redis))))
    }

    /// Calls through every replica until told to stop; what was answered, and how many were not.
    fn call_all(&self, stop: &Arc<AtomicBool>) -> Vec<tokio::task::JoinHandle<(Vec<Called>, u64)>> {
        let numbers = Arc::new(AtomicU64::new(0));
        let calling = |seat: usize| {
            let (numbers, stop, url) = (numbers.clone(), stop.clone(), self.fleet.on(seat).url().to_owned());
            tokio::spawn(async move {
                let (client, mut called, mut failed) = (caribou_tests::network::http_client(), Vec::new(), 0);
                let mut beats = Beats::every(Duration::from_millis(40), SOON * 20);
                while beats.next().await && !stop.load(Ordering::Relaxed) {
                    let (number, started) = (numbers.fetch_add(1, Ordering::Relaxed), Instant::now());
                    let body = json!({ "name": "fake_t", "arguments": { "number": number } });
                    let answer = client.post(format!("{url}/api/mcp/tools/call")).json(&body).send().await;
                    match answer {
                        Ok(answer) if answer.status().is_success() => called.push(Called { number, seat, started }),
                        _ => failed += 1,
                    }
                }
                (called, failed)
            })
        };
        (0..REPLICAS).map(calling).collect()
    }

    /// Resets, or changes the configuration, through one of the replicas. Whether it is on record, and whether every
    /// replica has said so.
    async fn moves(&self, revision: Option<u64>, chance: &mut Seeded) -> (bool, bool) {
        let seat = usize::try_from(chance.between(0, REPLICAS as u64)).unwrap();
        let caribou = self.fleet.on(seat);
        let Some(revision) = revision else {
            let answer = caribou.post("/api/mcp/cache/reset", "").await;
            let is_done = answer.status == 200;
            let told = if is_done { answer.json() } else { Value::Null };
            let everybody = told["confirmed"].as_array().is_some_and(|all| all.len() == REPLICAS);
            return (is_done, everybody);
        };
        let body = json!({ "mcp_servers": { "fake": entry(&self.fake, revision) } });
        let answer = caribou.send(caribou.request("PUT", "/api/mcp/config").json(&body)).await;
        (answer.status == 200, false)
    }
}

/// What was moved: the revision if it is one, what the server had seen before, when it was answered, and whether every
/// replica had said so by then.
type Answered = (Option<u64>, usize, Instant, bool);

impl Stand {
    /// Moves one thing after the other until there are as many as wanted, and the harm is over. Also how often it was
    /// tried, and how often all replicas said that it is done.
    async fn move_until(&self, wanted: usize, is_over: &AtomicBool, mut chance: Seeded) -> (Vec<Answered>, u64, u64) {
        let (mut moved, mut tried, mut confirmed) = (Vec::new(), 0, 0);
        let mut beats = Beats::every(Duration::from_millis(200), SOON * 20);
        while beats.next().await && (moved.len() < wanted || !is_over.load(Ordering::Relaxed)) {
            tried += 1;
            let revision = (tried % 2 == 0).then_some(tried);
            let seen_before = self.fake.log().all().len();
            let (is_done, everybody) = self.moves(revision, &mut chance).await;
            if is_done {
                confirmed += u64::from(everybody);
                moved.push((revision, seen_before, Instant::now(), everybody));
            }
        }
        (moved, tried, confirmed)
    }
}

/// The server under this revision, which it sees with every request.
fn entry(fake: &HttpFake, revision: u64) -> Value {
    fake.entry_with(json!({ "headers": { "X-Own": "$REPLICA", "X-Revision": revision.to_string() } }))
}

fn header(seen: &Seen, name: &str) -> String {
    seen.headers.get(name).cloned().unwrap_or_default()
}

/// Until when a change may be unknown to some replica, if it is on record at `acked`.
fn holds_from(acked: Instant, outages: &[(Instant, Instant)]) -> Instant {
    let mut from = acked + BOUND;
    for (away, back) in outages {
        if *away <= from && acked <= *back {
            from = from.max(*back + BOUND + RECONNECTED);
        }
    }
    from
}

/// Calls that were served under what had been superseded for too long, and calls that prove something.
fn beyond_the_bound(called: &[Called], moved: &[Moved], log: &[Seen]) -> (usize, usize) {
    let mut lists: HashMap<String, Vec<usize>> = HashMap::new();
    let mut calls: HashMap<u64, usize> = HashMap::new();
    for (at, seen) in log.iter().enumerate().filter(|(_, seen)| seen.event == "recv") {
        match seen.mcp_method().as_str() {
            "tools/list" => lists.entry(header(seen, "x-own")).or_default().push(at),
            "tools/call" => {
                let number = seen.message()["params"]["arguments"]["number"].as_u64();
                calls.extend(number.map(|number| (number, at)));
            }
            _ => {}
        }
    }
    let (mut beyond, mut proving) = (0, 0);
    for call in called {
        let holding: Vec<&Moved> = moved.iter().filter(|moved| moved.holds_from < call.started).collect();
        let (Some(at), false) = (calls.get(&call.number).copied(), holding.is_empty()) else { continue };
        proving += 1;
        let own = header(&log[at], "x-own");
        let revision: u64 = header(&log[at], "x-revision").parse().unwrap();
        let last_list = lists.get(&own).and_then(|lists| lists.iter().rev().find(|list| **list < at)).copied();
        let is_old = |moved: &&&Moved| match moved.revision {
            Some(written) => revision < written,
            None => last_list.is_none_or(|list| list < moved.seen_before),
        };
        if let Some(missed) = holding.iter().find(is_old) {
            println!("call {} at {own}: revision {revision}, {:?} missed", call.number, missed.revision);
            beyond += 1;
        }
        assert_eq!(own, format!("r{}", call.seat + 1), "each replica asks this server itself");
    }
    (beyond, proving)
}

/// The harm of the schedule: Redis dies every few seconds, PostgreSQL is away twice.
async fn do_harm(servers: Servers, harm: Arc<Mutex<Harm>>, lasts: Duration) {
    let mut beats = Beats::every(Duration::from_secs(4), lasts);
    let mut round = 0;
    while beats.next().await {
        round += 1;
        let mut servers = servers.lock().await;
        servers.1.kill();
        harm.lock().unwrap().redis_losses += 1;
        let is_outage = round == 3 || round == 6;
        if is_outage {
            let away = Instant::now();
            servers.0.stop();
            crate::schedule::moment(away + Duration::from_secs(2)).await;
            servers.0.start_again().await;
            harm.lock().unwrap().outages.push((away, Instant::now()));
        }
        crate::schedule::moment(Instant::now() + Duration::from_secs(1)).await;
        servers.1.start_again().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_reset_and_no_change_is_missed_while_redis_dies_and_postgres_is_away() {
    let scale = Scale::read();
    let (lasts, wanted) = scale.of((Duration::from_secs(36), 100), (Duration::from_secs(240), 500));
    let (stand, servers) = Stand::new(&scale).await;
    let (stop, harm) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Harm::default())));
    let calling = stand.call_all(&stop);
    let is_over = AtomicBool::new(false);
    let harming = async {
        do_harm(servers.clone(), harm.clone(), lasts).await;
        is_over.store(true, Ordering::Relaxed);
    };

    let driving = stand.move_until(wanted, &is_over, scale.chance());
    let ((moved, tried, confirmed), ()) = tokio::join!(driving, harming);
    let settled = Instant::now() + BOUND + RECONNECTED;
    crate::schedule::moment(settled + BOUND).await;
    stop.store(true, Ordering::Relaxed);
    let (mut called, mut failed) = (Vec::new(), 0);
    for calls in calling {
        let (answered, not) = calls.await.unwrap();
        called.extend(answered);
        failed += not;
    }
    let harm = std::mem::take(&mut *harm.lock().unwrap());
    let moved: Vec<Moved> = moved
        .into_iter()
        .map(|(revision, seen_before, acked, everybody)| {
            // What every replica has said to have done holds at once.
            let holds_from = if everybody { acked } else { holds_from(acked, &harm.outages) };
            Moved { revision, seen_before, holds_from }
        })
        .collect();
    let (beyond, proving) = beyond_the_bound(&called, &moved, &stand.fake.log().all());

    let servers = servers.lock().await;
    let stored = servers.0.ask("SELECT counter::text FROM reset_generation WHERE scope = 'global'").await.unwrap();
    let resets: u64 = stored[0].parse().unwrap();
    let missed = eventually(SOON, "every replica has noted the last reset", async || {
        let noted = "SELECT boot_id FROM replica_generation n JOIN reset_generation g USING (scope, origin, counter)";
        (servers.0.ask(noted).await.ok()?.len() == REPLICAS).then_some(0)
    })
    .await;
    let heard = stand.fleet.counted("caribou_resets_heard_total", "of=\"global\"").await;
    let extra = heard.saturating_sub(resets * (REPLICAS as u64 - 1));
    println!(
        "moved {} of {tried} (confirmed by all {confirmed}), calls {} ({failed} failed, {proving} prove something), Redis \
         losses {}, outages {}; beyond the bound {beyond}, missed {missed}, heard {heard} of {resets} resets, extra {extra}",
        moved.len(),
        called.len(),
        harm.redis_losses,
        harm.outages.len(),
    );
    assert_eq!((beyond, missed), (0, 0));
    assert!(extra <= 3 * harm.redis_losses * REPLICAS as u64, "extra resets");
    assert!(harm.redis_losses >= 5 && harm.outages.len() >= 2, "the faults have bitten");
    assert!(moved.len() >= wanted && confirmed > 0 && proving > 1_000, "the load has run");
}
