//! Children that start daemons, ignore SIGTERM and flood: none outlives its session, however that ends (durability.md
//! §8, A8; fault F20; invariant S3).
//!
//! Everything they start carries the mark of their session; a process that takes it off on purpose is not looked for.

use std::time::Duration;

use caribou_tests::counter_server::{Bearing, Diary, boot_clock_ns};
use caribou_tests::{Answer, Caribou, Home, Setup, eventually, process};
use futures::future::join_all;
use rustix::process::Signal;
use serde_json::json;
use tokio::time::Instant;

use crate::scale::Scale;

/// Nothing of a session that has ended lives for longer.
const WITHIN: Duration = Duration::from_secs(6);

const SOON: Duration = Duration::from_secs(60);

/// How much more memory Caribou may hold after it has read floods.
const GROWTH_KIB: u64 = 20 * 1024;

/// The servers, and how each behaves.
const SERVERS: [(&str, Bearing); 4] = [
    ("daemon", Bearing { starts_daemon: true, is_stubborn: false, floods: false }),
    ("stubborn", Bearing { starts_daemon: false, is_stubborn: true, floods: false }),
    ("flood", Bearing { starts_daemon: false, is_stubborn: false, floods: true }),
    ("worst", Bearing::WORST),
];

/// A Caribou with sessions of each kind.
struct Stand {
    caribou: Caribou,
    diary: Diary,
    threads: usize,
    /// The diary is in it.
    home: Home,
}

impl Stand {
    async fn open(settings: &str) -> Self {
        let scale = Scale::read();
        let home = Home::new();
        let diary = Diary::new(&home);
        let setup = SERVERS
            .into_iter()
            .fold(Setup::new().settings(settings), |setup, (name, bearing)| setup.server(name, diary.entry(bearing)));
        let setup = scale.program.iter().fold(setup, |setup, program| setup.program(program.clone()));
        let caribou = setup.start().await;
        let stand = Self { caribou, diary, threads: scale.of(2, 25), home };
        stand.caribou.tools().await;
        // Those that were asked for their tools are the first that must be gone.
        assert!(stand.diary.lives().everyone().count() >= SERVERS.len());
        // Nobody lived but those: `all_gone` would miss the others.
        eventually(WITHIN, "the end of a look", async || stand.diary.alive().is_empty().then_some(())).await;
        stand
    }

    fn names(&self) -> impl Iterator<Item = (String, String)> {
        let threads = 0..self.threads;
        threads.flat_map(|thread| SERVERS.map(|(name, _)| (format!("t{thread}"), name.to_owned())))
    }

    /// Calls this tool in every thread and server.
    async fn call_all(&self, tool: &str) -> Vec<Answer> {
        let call = async |(thread, name): (String, String)| {
            self.caribou
                .call_in(&thread, &format!("{name}_{tool}"), json!({ "call_id": format!("{name}{thread}") }))
                .await
        };
        join_all(self.names().map(call)).await
    }

    /// Has a session in every thread and with every server, all that they start included.
    async fn fill(&self) -> Vec<u32> {
        let began = boot_clock_ns();
        for answer in self.call_all("count").await {
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        eventually(SOON, "every daemon", async || {
            let lives = self.diary.lives();
            let pids: Vec<u32> = lives.all().filter(|life| life.began_ns > began).map(|life| life.pid).collect();
            // Four servers in each thread, two of which start a daemon.
            (pids.len() == 6 * self.threads).then_some(pids)
        })
        .await
    }

    /// Waits until nothing lives that any counter was or has started.
    async fn all_gone(&self, within: Duration) {
        none_left(&self.diary, within).await;
    }
}

/// The child of a Caribou that runs the same program.
pub(crate) fn guard_of(caribou: &Caribou) -> u32 {
    let is_guard = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == b"guard")
    };
    caribou.descendants().into_iter().find(is_guard).expect("a Caribou has a guard")
}

/// A stand with sessions of each kind.
async fn filled() -> Stand {
    let stand = Stand::open("").await;
    stand.fill().await;
    stand
}

async fn none_left(diary: &Diary, within: Duration) {
    let deadline = Instant::now() + within;
    let left = eventually(within + SOON, "a look after the deadline", async || {
        let left = diary.alive();
        (left.is_empty() || Instant::now() > deadline).then_some(left)
    })
    .await;
    let lives = diary.lives();
    assert!(lives.all().next().is_some(), "nobody lived");
    let told: Vec<_> = lives.everyone().filter(|life| left.contains(&life.pid)).collect();
    assert!(left.is_empty(), "{} live on after {within:?}: {told:#?}", left.len());
    assert_eq!(lives.overlaps(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_sessions_leave_no_process_and_floods_leave_no_memory() {
    let stand = Stand::open("").await;
    let mut before = 0;
    for round in 0..4 {
        stand.fill().await;
        if round == 1 {
            before = process::rss_kib(stand.caribou.pid());
        }
        let close = async |thread| stand.caribou.delete(&format!("/api/threads/t{thread}/mcp-sessions")).await;
        let began = Instant::now();
        for closed in join_all((0..stand.threads).map(close)).await {
            // It waits as long as the contract lets it: each may take two graces to be killed.
            assert!(closed.status == 200 || closed.code() == "timeout", "{closed:?}");
        }
        stand.all_gone(WITHIN.saturating_sub(began.elapsed())).await;
    }
    let after = process::rss_kib(stand.caribou.pid());
    println!("{} sessions, {before} KiB after the second round, {after} KiB at the end", 4 * 4 * stand.threads);
    assert!(after < before + GROWTH_KIB, "{before} KiB before, {after} KiB after");
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_sessions_leave_no_process() {
    let idle = Duration::from_secs(5);
    let stand = Stand::open(&format!("sessions:\n  idle_seconds: {}\n", idle.as_secs())).await;
    stand.fill().await;
    stand.all_gone(idle + WITHIN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_crash_leave_no_process() {
    let stand = Stand::open("").await;
    stand.fill().await;
    for answer in stand.call_all("die").await {
        assert_eq!(answer.code(), "outcome_unknown", "{answer:?}");
    }
    stand.all_gone(WITHIN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_are_killed_leave_no_process() {
    let stand = Stand::open("").await;
    stand.fill().await;
    for life in stand.diary.lives().all().filter(|life| !life.is_daemon) {
        process::signal(life.pid, Signal::KILL);
    }
    stand.all_gone(WITHIN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_leaves_no_process_of_what_it_supersedes() {
    let stand = Stand::open("").await;
    let pids = stand.fill().await;
    assert_eq!(stand.caribou.post("/api/mcp/cache/reset", "").await.status, 200);
    // The catalogue asks again, so that others come and go meanwhile.
    eventually(WITHIN, "what was there", async || {
        let alive = stand.diary.alive();
        pids.iter().all(|pid| !alive.contains(pid)).then_some(())
    })
    .await;
    stand.all_gone(WITHIN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stops_leaves_no_process() {
    let Stand { caribou, diary, threads: _, home: _home } = filled().await;
    let (status, _folder) = caribou.stop().await;
    assert!(status.success(), "{status}");
    let left = diary.alive();
    assert!(left.is_empty(), "stopped, but {left:?} live on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_that_is_killed_leaves_no_process_and_the_next_one_serves() {
    let stand = filled().await;
    process::signal(guard_of(&stand.caribou), Signal::KILL);
    stand.all_gone(WITHIN).await;
    stand.fill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_killed_leaves_no_process() {
    let Stand { caribou, diary, threads: _, home: _home } = filled().await;
    let _folder = caribou.kill().await;
    none_left(&diary, WITHIN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_when_guard_and_replica_are_killed_at_once_ends_with_the_next_start() {
    let Stand { caribou, diary, threads, home: _home } = filled().await;
    let guard = guard_of(&caribou);
    // Neither may see the other die.
    for pid in [guard, caribou.pid()] {
        process::signal(pid, Signal::STOP);
    }
    process::signal(guard, Signal::KILL);
    let _folder = caribou.kill().await;
    let leaders = diary.lives();
    eventually(WITHIN, "the end of every server", async || {
        let alive = diary.alive();
        leaders.all().all(|life| life.is_daemon || !alive.contains(&life.pid)).then_some(())
    })
    .await;
    // It has bitten: nobody was there to end the daemons.
    let left = diary.alive();
    assert!(left.len() >= 2 * threads, "{left:?}");
    let _next = Setup::new().start().await;
    none_left(&diary, WITHIN).await;
}
