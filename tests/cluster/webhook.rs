//! Events told to a receiver that accepts and says nothing, breaks, is busy, knows no thread, and whose runs fail
//! (contract 6.9; invariant N1; fault F18 of durability.md §8).

use std::time::Duration;

use caribou_tests::event_receiver::{Answers, Moods};
use caribou_tests::task_server::{Ends, Manners};

use crate::fleet::Fleet;
use crate::load::{Job, submit_all};
use crate::records::Records;
use crate::scale::Scale;
use crate::tasks::Stage;

/// Of a hundred answers. Three in four are no success, and one in fifty gives up at once.
const WEIGHTS: [(u64, Answers); 7] = [
    (20, Answers::Takes),
    (20, Answers::Launches),
    (18, Answers::LaunchesInVain),
    (15, Answers::TakesAndDrops),
    (15, Answers::Breaks),
    (10, Answers::IsBusy),
    (2, Answers::KnowsNoThread),
];

/// How long the last waits and attempts may take: five failures, and as many times unclear, each two seconds at most.
const DRAIN: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn every_event_is_told_once_or_given_up_in_sight() {
    let scale = Scale::read();
    let mut chance = scale.chance();
    let (count, within) = scale.of((300, Duration::from_secs(10)), (2_000, Duration::from_secs(60)));
    let moods = Moods { weights: WEIGHTS.to_vec(), seed: chance.number() };
    let job = |n| {
        let ends_at = Duration::from_millis(chance.between(0, 5_000));
        let ends = *chance.pick(&[Ends::Completed, Ends::Failed]);
        Job { n, ends_at, ends, cancelled_at: None }
    };
    let jobs = (0..count).map(job).collect();
    let records = Records::sqlite(&scale).await;
    let stage = Stage::set(scale, records, Manners::default(), moods).await;
    let fleet = stage.fleet(1, "", &[]).await;
    let callers = submit_all(fleet.doors(), jobs, within, chance.part()).await;
    let drained = stage.drain(DRAIN).await;
    let reckoning = stage.reckon("webhook", &callers, drained).await;
    reckoning.assert_safe();
    assert_eq!(u64::try_from(reckoning.told + reckoning.dead).unwrap(), count, "each is told or given up");
    // It has bitten: every way to fail has happened, and was got over.
    let counts = reckoning.receiver;
    let least = count / 50;
    for (what, happened) in [
        ("dropped", counts.dropped),
        ("broke", counts.broke),
        ("busy", counts.busy),
        ("runs that fail", counts.failing_runs),
        ("repeats of a key", counts.repeats),
    ] {
        assert!(happened >= least, "{what}: {happened}");
    }
    assert!(counts.gone >= 1 && reckoning.dead as u64 >= counts.gone, "{} dead", reckoning.dead);
    // What was given up is in sight of whoever asks for the task.
    let dead = fleet.counted("caribou_task_deliveries_total", "outcome=\"gone\"").await;
    assert_eq!(dead, counts.gone);
    assert_eq!(shown_as_dead(&stage, &fleet).await, reckoning.dead);
}

/// The tasks that are shown with a delivery that was given up.
async fn shown_as_dead(stage: &Stage, fleet: &Fleet) -> usize {
    let task = stage.records.task_name();
    let sql = format!("SELECT {task} || ' ' || user_id FROM mcp_task");
    let mut shown = 0;
    for row in stage.records.ask(&sql).await {
        let (task, user) = row.split_once(' ').unwrap();
        let path = format!("/api/threads/t/mcp-tasks/mcp-task-{task}?user_id={user}");
        shown += usize::from(fleet.on(0).get(&path).await.json()["notification_status"] == "dead_letter");
    }
    shown
}
