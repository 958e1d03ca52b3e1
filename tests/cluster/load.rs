//! The callers of a run: they submit each task once, whatever they hear, and ask for some to be cancelled.

use std::time::Duration;

use caribou_tests::network;
use caribou_tests::seeded::Seeded;
use caribou_tests::task_server::{Ends, Plan};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::fleet::Doors;
use crate::schedule::{Beats, moment};

/// A caller waits no longer: a frozen replica answers after its pause.
const PATIENCE: Duration = Duration::from_secs(60);

/// How soon a caller tries again.
const BETWEEN: Duration = Duration::from_millis(50);

/// The longest that a task lasts which waits to be cancelled.
const FOR_EVER: Duration = Duration::from_secs(3_600);

/// Users, so that none has too many tasks; each has one thread.
const USERS: u64 = 8;

/// Names under which one server is configured, since a replica asks each no more than four things at once.
pub(crate) const SERVERS: [&str; 4] = ["north", "east", "south", "west"];

/// One task to be.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) n: u64,
    /// When it ends, counted from the begin of the run.
    pub(crate) ends_at: Duration,
    pub(crate) ends: Ends,
    /// When a caller asks for its end instead, counted likewise.
    pub(crate) cancelled_at: Option<Duration>,
}

/// What the caller heard.
#[derive(Clone, Debug)]
pub(crate) enum Heard {
    /// The name of its task.
    Task(String),
    /// An error in the product's words.
    Refused(String),
    /// The connection was lost.
    Nothing,
}

/// So many tasks whose ends are spread over `lasts`: some fail, and some go on until they are cancelled.
pub(crate) fn jobs(count: u64, lasts: Duration, chance: &mut Seeded) -> Vec<Job> {
    let ms = u64::try_from(lasts.as_millis()).unwrap();
    let job = |n| {
        let is_cancelled = chance.happens(0.05);
        let ends_at = Duration::from_millis(chance.between(1_000, ms));
        Job {
            n,
            ends_at: if is_cancelled { FOR_EVER } else { ends_at },
            ends: if chance.happens(0.2) { Ends::Failed } else { Ends::Completed },
            cancelled_at: is_cancelled.then_some(ends_at),
        }
    };
    (0..count).map(job).collect()
}

/// Submits them, spread over `within`, each at a door by chance.
pub(crate) async fn submit_all(
    doors: Doors,
    jobs: Vec<Job>,
    within: Duration,
    mut chance: Seeded,
) -> Vec<(Job, Heard)> {
    let began = Instant::now();
    let client = network::http_client();
    let mut beats = Beats::every(within / u32::try_from(jobs.len().max(1)).unwrap(), FOR_EVER);
    let mut callers = JoinSet::new();
    for job in jobs {
        beats.next().await;
        callers.spawn(submit(client.clone(), doors.clone(), job, began, chance.part()));
    }
    callers.join_all().await
}

async fn submit(client: reqwest::Client, doors: Doors, job: Job, began: Instant, mut chance: Seeded) -> (Job, Heard) {
    let door = open_door(&doors, &mut chance).await;
    let (user, server) = (format!("u{}", job.n % USERS), chance.pick(&SERVERS));
    let left = job.ends_at.saturating_sub(began.elapsed()).max(Duration::from_secs(1));
    let plan = Plan { ends: job.ends, ..Plan::done_after(job.n, left) };
    let body = json!({
        "name": format!("{server}_job_submit"), "arguments": plan.arguments(), "user_id": user, "thread_id": "t",
    });
    let sent = client.post(format!("{door}/api/mcp/tools/call")).timeout(PATIENCE).json(&body).send().await;
    let Ok(answer) = sent else { return (job, Heard::Nothing) };
    let Ok(text) = answer.text().await else { return (job, Heard::Nothing) };
    let told: Value = serde_json::from_str(&text).unwrap_or_default();
    let Some(task) = told.pointer("/result/structuredContent/task_id").and_then(Value::as_str) else {
        return (job, Heard::Refused(text));
    };
    if let Some(at) = job.cancelled_at {
        moment((began + at).max(Instant::now())).await;
        cancel(&client, &doors, &user, task, &mut chance).await;
    }
    let task = task.to_owned();
    (job, Heard::Task(task))
}

async fn open_door(doors: &Doors, chance: &mut Seeded) -> String {
    let mut looks = Beats::every(BETWEEN, PATIENCE);
    while looks.next().await {
        if let Some(door) = doors.pick(chance) {
            return door;
        }
    }
    panic!("no door was open within {PATIENCE:?}");
}

/// Asks for the end of a task until somebody has taken the request; asking again changes nothing.
async fn cancel(client: &reqwest::Client, doors: &Doors, user: &str, task: &str, chance: &mut Seeded) {
    let mut tries = Beats::every(BETWEEN, PATIENCE);
    while tries.next().await {
        let Some(door) = doors.pick(chance) else { continue };
        let url = format!("{door}/api/threads/t/mcp-tasks/{task}/cancel?user_id={user}");
        let answer = client.post(url).timeout(PATIENCE / 4).send().await;
        if answer.is_ok_and(|answer| answer.status().is_success()) {
            return;
        }
    }
    panic!("nobody took the request to cancel {task} within {PATIENCE:?}");
}
