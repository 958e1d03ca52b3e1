//! The proof that the runs of this folder notice a missing fence: without a guard the children of a replica that stands
//! still live on beside their successors (durability.md 2.2, guard; §5, mutation of the design).

use std::time::Duration;

use tokio::time::Instant;

use super::stand::{Load, Stand, threads};
use crate::schedule::moment;

/// 1.8 leases of `cluster.profile: fast`.
const STILL: Duration = Duration::from_secs(18);

#[tokio::test(flavor = "multi_thread")]
async fn without_a_guard_children_meet() {
    // One of the long runs: what stands still does so in real time.
    if !crate::scale::Scale::read().is_full {
        return;
    }
    let without = vec![("CARIBOU_FAULT".to_owned(), "without-guard".to_owned())];
    let mut stand = Stand::open_around(3, "", vec![without]).await;
    assert!(stand.scale.program.is_none(), "no release can be told to go without");
    let threads = threads(60);
    stand.warm(&threads).await;
    let load = Load { threads, per_minute: 600, slow: 0.0, slow_takes: Duration::ZERO };
    let (over, is_over) = tokio::sync::oneshot::channel::<()>();
    let load = tokio::spawn(load.run(stand.balancer(), stand.scale.chance(), is_over));
    let window = stand.window(0);
    let (boot, since) = (stand.replicas.boot(0).to_owned(), stand.now().await);
    stand.replicas.freeze(0);
    let thaw = Instant::now() + STILL;
    let taken = stand.taken_over(&window.threads, &boot, &since).await;
    moment(thaw.max(Instant::now())).await;
    stand.replicas.thaw(0);
    stand.replicas.replace_when_ended(0).await;
    drop(over);
    load.await.unwrap();
    let verdict = stand.judge("Without a guard, one replica stands still").await;
    println!("  {taken:?}");
    assert!(!verdict.overlaps.is_empty(), "two owners, and nobody noticed that their children met");
}
