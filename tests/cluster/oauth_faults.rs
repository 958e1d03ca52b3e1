//! A rotating refresh token while replicas stand still and are killed at every point of its refresh, PostgreSQL breaks
//! and the provider drops its answers (durability.md §8, A4 and A5; invariants O1, O2).
//!
//! The program of the tests is told to harm itself (`CARIBOU_FAULT`), so each fault hits the point it is meant for; its
//! chains are ten times as hasty as the product's: a lease of 3 s, a presentation is over after 12 s.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use caribou_tests::identity_provider::{FamilyCounts, FamilyRules, IdentityProvider, Mood};
use caribou_tests::seeded::Seeded;
use caribou_tests::{Answer, Caribou, Home, HttpFake, Postgres, Setup, eventually, process};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::records::Records;
use crate::scale::Scale;
use crate::schedule::Beats;

/// Longer than the lease of a chain (3 s) and shorter than that of a replica (10 s). Whoever stands still for longer than
/// the latter is declared dead, and then its token is presented once more: that is the counted step of the policy, whose
/// bounds are those of a kill.
const STILL: Duration = Duration::from_millis(3_600);

/// Beyond all waits of a hasty chain, on a loaded machine.
const SOON: Duration = Duration::from_secs(60);

/// In their order; what a kill there costs.
const POINTS: [(&str, Cost); 5] = [
    ("begun", Cost::Nothing),
    ("sent", Cost::MaybeTheFamily),
    ("answered", Cost::MaybeTheFamily),
    ("committing", Cost::MaybeTheFamily),
    ("committed", Cost::Nothing),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cost {
    Nothing,
    /// The provider has rotated and nobody has the successor: a strict one revokes the family of the token that is then
    /// presented once more.
    MaybeTheFamily,
}

/// The states of chains as the database saw them, in their order.
const AUDIT: &str = "
CREATE TABLE chain_audit (at bigserial, connection text, state int);
CREATE FUNCTION chain_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chain_audit (connection, state) VALUES (NEW.connection, NEW.state);
    RETURN NULL;
END $$;
CREATE TRIGGER chain_audit AFTER UPDATE ON mcp_oauth_chain
    FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION chain_audit();";

struct Stand {
    records: Records,
    provider: IdentityProvider,
    fake: HttpFake,
    key: String,
    servers: Vec<(String, Value)>,
    /// Folders with the logs of those that were killed, kept if the test fails.
    past: Vec<Home>,
}

impl Stand {
    async fn new(scale: &Scale) -> Self {
        let records = Records::postgres(scale).await;
        records.ask(AUDIT).await;
        let fake = HttpFake::start(json!({ "calls": { "t": [{ "text": "done" }] } })).await;
        let printed = Setup::new().command(&["keys", "generate"]).output().await.unwrap();
        let key = String::from_utf8(printed.stdout).unwrap().trim_end().to_owned();
        let provider = IdentityProvider::start().await;
        Self { records, provider, fake, key, servers: Vec::new(), past: Vec::new() }
    }

    /// A server with a chain of its own.
    fn found(&mut self, server: &str, rules: FamilyRules, oauth: Value) {
        let oauth = self.provider.found(server, rules, oauth);
        self.servers.push((server.to_owned(), self.fake.entry_with(json!({ "oauth": oauth }))));
    }

    /// A replica that is told to fail. Always the program of the tests: a release cannot be told.
    async fn replica(&self, faults: &str) -> Caribou {
        // Whoever is killed has nothing else to do.
        let discovers = !faults.starts_with("kill");
        let setup = Setup::new().settings(&format!(
            "cluster: {{profile: fast}}\nmcp_tasks: {{enabled: false}}\ncatalog: {{discover_at_start: {discovers}}}\n"
        ));
        let setup = setup.variable("CARIBOU_DATABASE_URL", &self.records.url(1));
        let setup = setup.variable("CARIBOU_CREDENTIALS_KEY", &self.key).variable("CARIBOU_FAULT", faults);
        let setup = setup.variable("CARIBOU_FAULT_HASTE", "10");
        let with = |setup: Setup, (name, entry): &(String, Value)| setup.server(name, entry.clone());
        Box::pin(self.servers.iter().fold(setup, with).start()).await
    }

    fn postgres(&mut self) -> &mut Postgres {
        match &mut self.records {
            Records::Postgres(postgres) => postgres,
            Records::Sqlite(_) => panic!("replicas share a PostgreSQL"),
        }
    }

    /// Starts a replica and has it refresh this chain, which is its end.
    async fn kill(&mut self, server: &str, point: &str) {
        let victim = self.replica(&format!("kill-{point}-{server}@1")).await;
        let asked = refresh(&victim, server).send().await;
        assert!(asked.is_err(), "it answers, and should be dead: {server}: {asked:?}");
        let pid = victim.pid();
        eventually(SOON, "its end", async || (!process::is_alive(pid)).then_some(())).await;
        self.past.push(victim.kill().await);
    }

    /// How often a chain of these came to an end without being called unknown before.
    async fn ended_silently(&self) -> u64 {
        let ended = "SELECT count(*) FROM chain_audit AS ended WHERE state = 3 AND NOT EXISTS
            (SELECT 1 FROM chain_audit AS before WHERE before.connection = ended.connection AND before.state = 2
             AND before.at < ended.at)";
        self.records.count(ended).await
    }

    async fn states(&self, state: u8) -> u64 {
        self.records.count(&format!("SELECT count(*) FROM chain_audit WHERE state = {state}")).await
    }
}

fn refresh(caribou: &Caribou, server: &str) -> reqwest::RequestBuilder {
    caribou.request("POST", &format!("/api/mcp/oauth/{server}/refresh")).timeout(SOON)
}

async fn refreshed(caribou: &Caribou, server: &str) -> Answer {
    caribou.send(refresh(caribou, server)).await
}

async fn chains(caribou: &Caribou) -> Vec<Value> {
    caribou.get("/api/mcp/oauth").await.json()["chains"].as_array().cloned().unwrap_or_default()
}

/// Waits until all these chains have so many generations at least.
async fn grown(caribou: &Caribou, count: usize, generation: u64) {
    let is_grown = |chain: &Value| chain["generation"].as_u64() >= Some(generation) && chain["state"] == "idle";
    let look = async || {
        let chains = chains(caribou).await;
        (chains.len() >= count && chains.iter().all(is_grown)).then_some(())
    };
    eventually(SOON, "the first tokens of all chains", look).await;
}

/// How a chain comes out: whether there is a token at last.
async fn lives(caribou: &Caribou, server: &str) -> bool {
    let mut last = String::new();
    let outcome = async || {
        let answer = refreshed(caribou, server).await;
        last.clone_from(&answer.body);
        matches!(answer.status, 200 | 403).then_some(answer.status == 200)
    };
    let lives = eventually(SOON, &format!("an outcome of {server}"), outcome).await;
    println!("{server}: {}", if lives { "lives" } else { &last });
    lives
}

/// When one replica stands still: in every sixth presentation or so, at any point.
fn pauses(chance: &mut Seeded) -> String {
    let points = POINTS.map(|(point, _)| point);
    let faults = (0..200).map(|at| {
        let number = 3 + 6 * at + chance.between(0, 5);
        format!("pause-{}@{number}", chance.pick(&points))
    });
    faults.collect::<Vec<_>>().join(",")
}

/// Lets each of these go on when it has stood still for long enough; never ends.
async fn thaw(pids: &[u32], pauses: &AtomicUsize) {
    let mut still: Vec<Option<Instant>> = vec![None; pids.len()];
    let mut beats = Beats::every(Duration::from_millis(20), Duration::from_secs(3_600));
    while beats.next().await {
        for (pid, since) in pids.iter().zip(&mut still) {
            match *since {
                None if process::is_stopped(*pid) => {
                    *since = Some(Instant::now());
                    pauses.fetch_add(1, Ordering::SeqCst);
                }
                Some(at) if at.elapsed() >= STILL => {
                    process::signal(*pid, Signal::CONT);
                    *since = None;
                }
                _ => {}
            }
        }
    }
}

/// Calls and refreshes through any replica, for so long, and waits for all answers. How many there were of each status.
async fn drive(seats: &[Caribou], lasts: Duration, chance: &mut Seeded) -> [usize; 2] {
    let mut beats = Beats::every(Duration::from_millis(150), lasts);
    let mut asked = JoinSet::new();
    let mut counts = [0, 0];
    let mut count = |answer: Option<u16>| counts[usize::from(answer != Some(200))] += 1;
    while beats.next().await {
        while let Some(answer) = asked.try_join_next() {
            count(answer.unwrap());
        }
        // More than stand in line at three that stand still are of no use.
        if asked.len() >= 60 {
            continue;
        }
        let seat = chance.pick(seats);
        let request = if chance.happens(0.5) {
            refresh(seat, "fake")
        } else {
            let call = json!({ "name": "fake_t", "arguments": {}, "thread_id": "t" }).to_string();
            let request = seat.request("POST", "/api/mcp/tools/call").timeout(SOON);
            request.header("content-type", "application/json").body(call)
        };
        asked.spawn(async move { request.send().await.ok().map(|answer| answer.status().as_u16()) });
    }
    while let Some(answer) = asked.join_next().await {
        count(answer.unwrap());
    }
    counts
}

/// Waits until nobody is at it, and checks that the row has whatever the provider gave.
async fn nothing_lost(caribou: &Caribou, provider: &IdentityProvider, server: &str) -> FamilyCounts {
    let look = async || {
        let counts = provider.counts(server);
        let chain = chains(caribou).await.into_iter().find(|chain| chain["server"] == server)?;
        (chain["state"] == "idle" && chain["generation"].as_u64() == Some(counts.rotated)).then_some(counts)
    };
    eventually(SOON, "every successor in the row", look).await
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_stand_still_at_any_point_of_a_refresh_lose_and_repeat_nothing() {
    // A4.
    let scale = Scale::read();
    let mut chance = scale.chance();
    let mut stand = Stand::new(&scale).await;
    let rules = FamilyRules { life: Duration::from_secs(1), takes: Duration::from_millis(100), ..Default::default() };
    stand.found("fake", rules, json!({}));
    let mut seats = Vec::new();
    for _ in 0..3 {
        seats.push(stand.replica(&pauses(&mut chance)).await);
    }
    let pids: Vec<u32> = seats.iter().map(Caribou::pid).collect();
    let stood = AtomicUsize::new(0);
    let run = async {
        let answers = drive(&seats, scale.of(Duration::from_secs(40), Duration::from_secs(180)), &mut chance).await;
        (answers, nothing_lost(&seats[0], &stand.provider, "fake").await)
    };
    let ([done, failed], counts) = tokio::select! {
        () = thaw(&pids, &stood) => panic!("it never ends"),
        ended = run => ended,
    };
    let (stood, unknown) = (stood.into_inner(), stand.states(2).await);
    println!("A4: {counts:?}, {stood} stood still, {done} answers, {failed} without a token, {unknown} unknown");
    assert_eq!((counts.reused, counts.most_at_once), (0, 1), "a spent token was shown, or two requests met");
    assert_eq!(stand.states(3).await, 0, "a chain ended");
    assert!(stood >= scale.of(4, 20), "the faults have not bitten: {stood}");
    assert!(counts.rotated >= scale.of(25, 100), "too few refreshes: {}", counts.rotated);
    assert!(done >= 20, "{done} answers, and {failed} without a token");
}

/// The chains of the second run: one for each fault.
fn found_all(stand: &mut Stand, kills: usize, lenient: usize) {
    let strict =
        FamilyRules { life: Duration::from_secs(3_600), takes: Duration::from_millis(300), leeway: Duration::ZERO };
    for (point, cost) in POINTS {
        (0..kills).for_each(|at| stand.found(&format!("kill-{point}-{at}"), strict, json!({})));
        if cost == Cost::MaybeTheFamily {
            let rules = FamilyRules { leeway: Duration::from_secs(30), ..strict };
            let known = json!({ "reuse_leeway_seconds": 30 });
            (0..lenient).for_each(|at| stand.found(&format!("lenient-{point}-{at}"), rules, known.clone()));
        }
    }
    for at in 0..kills {
        ["drops", "breaks", "slow"].iter().for_each(|mood| stand.found(&format!("{mood}-{at}"), strict, json!({})));
    }
    stand.found("away", FamilyRules { takes: Duration::from_secs(2), ..strict }, json!({}));
}

/// PostgreSQL ends while a request is under way, and nothing is presented until it is back.
async fn database_away(stand: &mut Stand, survivors: &[Caribou; 2]) {
    let before = stand.provider.counts("away").requests;
    let under_way = tokio::spawn(refresh(&survivors[0], "away").send());
    let provider = &stand.provider;
    let asked = async || (provider.counts("away").requests > before).then_some(());
    eventually(SOON, "a request under way", asked).await;
    stand.postgres().stop();
    // The successor comes meanwhile, is used and kept.
    assert_eq!(under_way.await.unwrap().unwrap().status().as_u16(), 200);
    let before = stand.provider.all().requests;
    for caribou in survivors {
        for server in ["away", "slow-0", "breaks-0"] {
            assert_eq!(refreshed(caribou, server).await.status, 503, "{server}");
        }
    }
    assert_eq!(stand.provider.all().requests, before, "presented while nothing could be recorded");
    stand.postgres().start_again().await;
    assert_eq!(nothing_lost(&survivors[1], &stand.provider, "away").await.reused, 0);
    assert!(lives(&survivors[1], "away").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_at_every_point_and_a_provider_that_drops_cost_at_most_what_nobody_could_keep() {
    // A5.
    let scale = Scale::read();
    let (kills, lenient) = (scale.of(3, 20), scale.of(1, 5));
    let mut stand = Stand::new(&scale).await;
    found_all(&mut stand, kills, lenient);
    let survivors = [stand.replica("").await, stand.replica("").await];
    let first = &survivors[0];
    grown(first, stand.servers.len(), 1).await;
    assert_eq!(stand.provider.all().rotated, stand.servers.len() as u64, "one first token for each");
    for at in 0..kills {
        for (point, _) in POINTS {
            stand.kill(&format!("kill-{point}-{at}"), point).await;
        }
    }
    for at in 0..lenient {
        for (point, _) in POINTS.iter().filter(|(_, cost)| *cost == Cost::MaybeTheFamily) {
            let server = format!("lenient-{point}-{at}");
            stand.kill(&server, point).await;
            assert!(lives(first, &server).await, "ended, although the provider would take the token again: {server}");
        }
    }
    for at in 0..kills {
        stand.provider.then(&format!("drops-{at}"), Mood::Drops);
        assert_eq!(refreshed(first, &format!("drops-{at}")).await.status, 503);
        stand.provider.then(&format!("breaks-{at}"), Mood::Breaks);
        assert_eq!(refreshed(first, &format!("breaks-{at}")).await.status, 503);
        // Beyond a lease, which is kept meanwhile.
        stand.provider.then(&format!("slow-{at}"), Mood::Slow(Duration::from_secs(4)));
    }
    let slow = (0..kills).map(|at| tokio::spawn(refresh(first, &format!("slow-{at}")).send()));
    for answer in futures::future::join_all(slow).await {
        assert_eq!(answer.unwrap().unwrap().status().as_u16(), 200, "a slow answer is an answer");
    }
    database_away(&mut stand, &survivors).await;
    reckon(&stand, first, kills).await;
}

/// What became of all of them.
async fn reckon(stand: &Stand, caribou: &Caribou, kills: usize) {
    let (mut ended, mut could) = (0, 0);
    for (server, _) in &stand.servers {
        let point = POINTS.iter().find(|(point, _)| server.starts_with(&format!("kill-{point}-")));
        let is_costly = point.is_some_and(|(_, cost)| *cost == Cost::MaybeTheFamily) || server.starts_with("drops-");
        let is_alive = lives(caribou, server).await;
        assert!(is_alive || is_costly, "it ended, and there was no reason to: {server}");
        could += u64::from(is_costly);
        ended += u64::from(!is_alive);
        let counts = stand.provider.counts(server);
        assert!(counts.reused <= u64::from(is_costly), "{server}: {counts:?}");
        assert_eq!(counts.reused, u64::from(!is_alive), "{server}: {counts:?}");
    }
    let all = stand.provider.all();
    let (unknown, silent) = (stand.states(2).await, stand.ended_silently().await);
    println!("A5: {all:?}, {ended} chains of {could} ended, {unknown} times unknown, {silent} silently");
    assert_eq!(all.most_at_once, 1, "two requests met");
    assert!(all.reused <= could);
    assert_eq!(silent, 0, "a chain ended that was never called unknown");
    assert_eq!(stand.states(3).await, ended);
    // They have bitten: whatever is killed after the answer is lost for sure.
    assert!(ended >= 2 * kills as u64 && unknown >= 4 * kills as u64, "{ended} ended, {unknown} unknown");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_stands_still_for_longer_than_a_replica_may_costs_one_counted_presentation() {
    // Architecture.md §10, D10: its holder is declared dead, and its token is presented once more.
    let scale = Scale::read();
    let mut stand = Stand::new(&scale).await;
    let rules =
        FamilyRules { life: Duration::from_secs(3_600), takes: Duration::from_millis(300), ..Default::default() };
    let lenient = FamilyRules { leeway: Duration::from_secs(120), ..rules };
    stand.found("strict", rules, json!({}));
    stand.found("lenient", lenient, json!({ "reuse_leeway_seconds": 120 }));
    let survivor = stand.replica("").await;
    grown(&survivor, 2, 1).await;
    for server in ["strict", "lenient"] {
        let still = stand.replica(&format!("pause-answered-{server}@1")).await;
        let held = tokio::spawn(refresh(&still, server).send());
        eventually(SOON, "a replica that stands still", async || process::is_stopped(still.pid()).then_some(())).await;
        let is_alive = lives(&survivor, server).await;
        // The provider had rotated: only one that looks away for a while goes on with it.
        assert_eq!(is_alive, server == "lenient", "{server}");
        assert_eq!(stand.provider.counts(server).reused, u64::from(!is_alive), "{server}");
        held.abort();
        stand.past.push(still.kill().await);
    }
    assert_eq!(stand.ended_silently().await, 0, "a chain ended that was never called unknown");
    assert_eq!(stand.provider.all().most_at_once, 1, "two requests met");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_continues_the_chain() {
    // Durability.md §8, F3: what is under way when a replica is asked to stop is stored before it ends.
    let scale = Scale::read();
    let mut stand = Stand::new(&scale).await;
    let rules = FamilyRules { life: Duration::from_secs(3_600), takes: Duration::from_secs(1), ..Default::default() };
    stand.found("fake", rules, json!({}));
    let mut seats = Vec::new();
    for _ in 0..3 {
        seats.push(stand.replica("").await);
    }
    grown(&seats[0], 1, 1).await;
    for _ in 0..3 {
        let leaving = seats.remove(0);
        let before = stand.provider.counts("fake").requests;
        let under_way = tokio::spawn(refresh(&leaving, "fake").send());
        let asked = async || (stand.provider.counts("fake").requests > before).then_some(());
        eventually(SOON, "a request under way", asked).await;
        let (status, _home) = leaving.stop().await;
        assert!(status.success(), "{status}");
        let _ = under_way.await.unwrap();
        seats.push(stand.replica("").await);
        let counts = nothing_lost(&seats[0], &stand.provider, "fake").await;
        assert_eq!((counts.reused, counts.most_at_once), (0, 1));
        assert_eq!(refreshed(&seats[2], "fake").await.status, 200, "the new life goes on");
    }
    assert_eq!(nothing_lost(&seats[0], &stand.provider, "fake").await.rotated, 7);
    assert_eq!(stand.states(2).await + stand.states(3).await, 0);
    // Nobody is left, and the next one finds what they knew.
    for seat in seats {
        seat.stop().await;
    }
    let next = stand.replica("").await;
    assert_eq!(refreshed(&next, "fake").await.status, 200);
    assert_eq!(stand.provider.counts("fake").reused, 0);
}
