//! Replicas whose wall clocks are an hour off, in both directions, and jump: nobody is declared dead for it, no session
//! moves and no call fails (durability.md §8, F13; §2.3; invariants L1, S3, I28).

use std::time::Duration;

use caribou_tests::SkewedClock;
use caribou_tests::seeded::Seeded;
use tokio::time::Instant;

use super::stand::{Load, Stand, threads};
use crate::schedule::Beats;

const HOUR: i64 = 3_600;

/// How long they are called, and how often one of the clocks jumps.
const LASTS: Duration = Duration::from_secs(24);
const JUMPS: Duration = Duration::from_secs(3);

/// The hour of the day by the clock of the replica on this seat.
async fn hour(stand: &Stand, seat: usize) -> u32 {
    let answer = stand.replicas.on(seat).request("GET", "/healthz").send().await.unwrap();
    let date = answer.headers()["date"].to_str().unwrap().to_owned();
    let hour = date.split(' ').nth(4).and_then(|time| time.split(':').next()?.parse().ok());
    hour.unwrap_or_else(|| panic!("no time of day: {date}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn wall_clocks_that_are_wrong_and_jump_move_nothing() {
    let clocks: Vec<SkewedClock> = (0..3).map(|_| SkewedClock::new()).collect();
    let around = clocks.iter().map(SkewedClock::variables).collect();
    let stand = Stand::open_around(3, "", around).await;
    let threads = threads(24);
    stand.warm(&threads).await;
    clocks[0].set(HOUR);
    clocks[1].set(-HOUR);
    let load = Load { threads, per_minute: 1_200, slow: 0.05, slow_takes: Duration::from_secs(1) };
    let (over, is_over) = tokio::sync::oneshot::channel::<()>();
    let mut chance: Seeded = stand.scale.chance();
    let load = tokio::spawn(load.run(stand.balancer(), chance.part(), is_over));
    let until = Instant::now() + LASTS;
    let (mut beats, mut jumps) = (Beats::every(JUMPS, LASTS), 0);
    while Instant::now() < until && beats.next().await {
        // Longer than any lease, each time the other way.
        clocks[2].set(if jumps % 2 == 0 { HOUR } else { -HOUR });
        jumps += 1;
    }
    drop(over);
    load.await.unwrap();
    let verdict = stand.judge(&format!("Clocks an hour off, {jumps} jumps")).await;
    verdict.assert_safe();
    let failed: Vec<_> = verdict.failed().map(|call| format!("{call:?}")).collect();
    assert_eq!(failed, Vec::<String>::new());
    assert_eq!(verdict.taken_over, 0, "a clock moved sessions");
    // It has bitten: the replicas do live at those times.
    assert!(jumps >= 4, "{jumps} jumps");
    let apart = 24 + hour(&stand, 0).await - hour(&stand, 1).await;
    // The hour may turn between the two looks.
    assert!(matches!(apart % 24, 1..=2), "they do not go by their clocks: {apart} hours apart");
    stand.replicas.stop().await;
}
