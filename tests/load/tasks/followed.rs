//! A real Caribou with a PostgreSQL of its own that follows tasks of a server in this process.
//!
//! Owns the two windows: one with few tasks, in which each poll should come when it is due, and one with more than a poll
//! loop gets through in the interval that they ask for. What counts is what arrives at the server of the tasks.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use caribou_tests::task_server::{Manners, Plan, SeenTask};
use caribou_tests::{Caribou, Postgres, Setup, TaskServer, network};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::proc::{cpu_below, own_cpu};
use crate::sample::Samples;

/// The name of the server of tasks in Caribou's configuration.
const SERVER: &str = "jobs";

/// The interval of its tasks.
const INTERVAL: Duration = Duration::from_secs(1);

/// Tasks of the window with few of them.
const FEW: u64 = 20;

/// Submits at the same time.
const SUBMITTERS: usize = 16;

/// Tasks of one user: less than a user may have.
const OF_ONE_USER: u64 = 500;

/// No task ends in a run.
const FOR_EVER: Duration = Duration::from_secs(24 * 3_600);

/// Before the first reading.
const WARM_UP: Duration = Duration::from_secs(3);

/// As many polls at a time as may be, of one server too, and as often as it is due.
const SETTINGS: &str = "
mcp_tasks:
  poll_interval_seconds: 1
  max_concurrent_polls: 64
  per_server: 64
  polls_per_second: 100000
audit: {enabled: false}
";

/// What following tasks came to.
#[derive(Debug, Serialize)]
pub(super) struct Followed {
    /// Tasks in the window with many.
    pub(super) tasks: u64,
    /// Polls that arrived in it.
    pub(super) polls: u64,
    /// How long it was, in seconds.
    pub(super) lasted_s: f64,
    /// CPU time of each poll, in microseconds.
    pub(super) cpu_us_per_poll: CpuPerPoll,
    /// Polls of the window with few tasks.
    pub(super) few_polls: usize,
    /// From when a task was due to its poll there, half of them and nearly all, in milliseconds.
    pub(super) late_p50_ms: f64,
    /// Of 99 in 100.
    pub(super) late_p99_ms: f64,
}

/// Who used it.
#[derive(Debug, Serialize)]
pub(super) struct CpuPerPoll {
    /// Caribou and its guard.
    pub(super) caribou: f64,
    /// PostgreSQL.
    pub(super) postgres: f64,
    /// The server of the tasks, which is this process.
    pub(super) server: f64,
}

impl Followed {
    /// Polls in a second.
    pub(super) fn polls_per_second(&self) -> f64 {
        self.polls as f64 / self.lasted_s
    }
}

/// Has `program` follow so many tasks.
///
/// # Errors
/// A submit fails, or a task ends.
pub(super) async fn follow(program: PathBuf, tasks: u64, length: Duration) -> anyhow::Result<Followed> {
    ensure!(program.is_file(), "there is no {}: build it, or name one with --caribou", program.display());
    let postgres = Postgres::start_durable().await;
    let server = TaskServer::start(Manners::default()).await;
    let setup = Setup::new().program(program).server(SERVER, server.entry()).settings(SETTINGS);
    let setup = setup.variable("CARIBOU_DATABASE_URL", &postgres.url("postgres"));
    let migrated = setup.command(&["migrate"]).output().await.context("running `caribou migrate`")?;
    ensure!(migrated.status.success(), "caribou migrate: {}", String::from_utf8_lossy(&migrated.stderr));
    let caribou = setup.start().await;

    eprintln!("{FEW} tasks are followed for {} s", length.as_secs());
    submit(&caribou, 0..FEW).await?;
    pass(WARM_UP).await;
    let start = Instant::now();
    pass(length).await;
    let mut late = lateness(&server.tasks(), start);
    ensure!(late.count() > 0, "nothing was polled; log:\n{}", caribou.log());
    let [p50, p99] = late.percentiles_us([0.50, 0.99]);

    eprintln!("{tasks} tasks are submitted and followed for {} s", length.as_secs());
    submit(&caribou, FEW..tasks).await?;
    pass(WARM_UP).await;
    let before = Reading::now(&caribou, &postgres, &server)?;
    pass(length).await;
    let after = Reading::now(&caribou, &postgres, &server)?;
    let ended = server.tasks().iter().filter(|task| task.ended.is_some()).count();
    ensure!(ended == 0, "{ended} tasks have ended; log:\n{}", caribou.log());
    let polls = after.polls - before.polls;
    let each =
        |of: fn(&Reading) -> Duration| of(&after).saturating_sub(of(&before)).as_secs_f64() * 1e6 / polls.max(1) as f64;
    Ok(Followed {
        tasks,
        polls,
        lasted_s: after.at.duration_since(before.at).as_secs_f64(),
        cpu_us_per_poll: CpuPerPoll {
            caribou: each(|reading| reading.caribou),
            postgres: each(|reading| reading.postgres),
            server: each(|reading| reading.server),
        },
        few_polls: late.count(),
        late_p50_ms: p50 / 1e3,
        late_p99_ms: p99 / 1e3,
    })
}

/// What was used so far.
struct Reading {
    at: Instant,
    polls: u64,
    caribou: Duration,
    postgres: Duration,
    server: Duration,
}

impl Reading {
    fn now(caribou: &Caribou, postgres: &Postgres, server: &TaskServer) -> anyhow::Result<Self> {
        Ok(Self {
            at: Instant::now(),
            polls: server.counts().statuses,
            caribou: cpu_below(caribou.pid())?,
            postgres: cpu_below(postgres.pid())?,
            server: own_cpu()?,
        })
    }
}

/// How much later than its interval each poll since `start` came after the one before. What it takes to answer and to
/// settle that one is counted as late too.
fn lateness(tasks: &[SeenTask], start: Instant) -> Samples {
    let mut late = Samples::default();
    for task in tasks {
        for pair in task.asked.windows(2).filter(|pair| pair[0] >= start) {
            late.answered(pair[1].duration_since(pair[0]).saturating_sub(INTERVAL));
        }
    }
    late
}

async fn submit(caribou: &Caribou, numbers: std::ops::Range<u64>) -> anyhow::Result<()> {
    let client = network::http_client();
    let one = |n: u64| {
        let plan = Plan::done_after(n, FOR_EVER);
        let body = json!({
            "name": format!("{SERVER}_job_submit"), "arguments": plan.arguments(),
            "user_id": format!("u{}", n / OF_ONE_USER), "thread_id": "t",
        });
        let request = client.post(format!("{}/api/mcp/tools/call", caribou.url())).json(&body);
        async move {
            let answer = request.send().await.context("submitting a task")?;
            let told: Value = answer.json().await.context("the answer to a submit")?;
            ensure!(told.pointer("/result/structuredContent/task_id").is_some(), "task {n} was not submitted: {told}");
            anyhow::Ok(())
        }
    };
    stream::iter(numbers.map(one)).buffer_unordered(SUBMITTERS).try_collect().await
}

/// Lets time pass: what is measured happens by itself.
async fn pass(length: Duration) {
    let _ = timeout(length, std::future::pending::<()>()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_is_late_by_what_it_came_after_the_interval() {
        let start = Instant::now();
        let asked = [0, 1_000, 2_010, 3_500].map(|ms| start + Duration::from_millis(ms)).to_vec();
        let task = SeenTask { n: 1, remote_id: "job-1".to_owned(), submits: 1, ended: None, asked };
        let mut late = lateness(&[task], start + Duration::from_millis(1));
        assert_eq!((late.count(), late.percentiles_us([0.0, 0.99])), (2, [10_000.0, 490_000.0]));
    }
}
