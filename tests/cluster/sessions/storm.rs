//! Two hundred sessions while replicas are killed, frozen and cut off, from each other and from the database
//! (acceptance run A6; faults F1, F2, F8, F9).

use std::time::Duration;

use caribou_tests::counter_server::boot_clock_ns;
use caribou_tests::seeded::Seeded;
use tokio::time::Instant;

use super::history::Window;
use super::stand::{Load, Stand, TakenOver, threads};
use super::verdict::Verdict;
use crate::schedule::moment;

/// Keys, and calls a minute over all of them.
const KEYS: usize = 200;
const PER_MINUTE: u32 = 2_000;

/// How long a replica stands still: 1.8 of the leases of `cluster.profile: fast`.
const STILL: Duration = Duration::from_secs(18);

/// Beyond the lease.
const AWAY: Duration = Duration::from_secs(14);

/// Long enough that both ends notice.
const CUT: Duration = Duration::from_secs(10);

/// From the loss of a replica to the moment at which another one holds a session that callers ask for, in milliseconds:
/// with a proof that nothing is left of it, and without one (lease, gap and 2 s).
const PROVED_MS: u64 = 3_000;
const UNPROVED_MS: u64 = 13_000;

/// How much later any of it may be where a build without optimisation shares its cores with others.
const LOADED_MS: u64 = 3_000;

/// From there to its first answer, when the children of many sessions are started at once by a build without
/// optimisation.
const BRING_UP_MS: u64 = 10_000;

/// Sessions that a replica must hold to be worth a fault.
const LEAST_HELD: usize = 10;

/// After a fault is over everything works again soon.
const SETTLE_NS: u64 = 3_000_000_000;

/// What is done to a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    Freeze,
    CutFromPeers,
    HoldFromPeers,
    CutFromDatabase,
    HoldFromDatabase,
}

/// What was done, and how soon others had taken over.
struct Done {
    fault: Fault,
    window: Window,
    under_way: usize,
    taken: TakenOver,
}

impl Stand {
    async fn harm(&mut self, fault: Fault, chance: &mut Seeded) -> Done {
        let seats: Vec<usize> = (0..self.replicas.size()).collect();
        let history = self.replicas.balancer().history();
        let held = |seat: &usize| history.held_by(self.replicas.boot(*seat)).len();
        // By chance, but not one that has only just begun.
        let seats: Vec<usize> = seats.into_iter().filter(|seat| held(seat) >= LEAST_HELD).collect();
        let seat = *chance.pick(&seats);
        let boot = self.replicas.boot(seat).to_owned();
        let under_way = self.replicas.balancer().history().under_way();
        let mut window = self.window(seat);
        let since = self.now().await;
        let taken = match fault {
            Fault::Kill => {
                self.replicas.kill(seat);
                let taken = self.taken_over(&window.threads, &boot, &since).await;
                self.replicas.replace_when_ended(seat).await;
                taken
            }
            Fault::Freeze => {
                self.replicas.freeze(seat);
                let thaw = Instant::now() + STILL;
                let taken = self.taken_over(&window.threads, &boot, &since).await;
                moment(thaw.max(Instant::now())).await;
                self.replicas.thaw(seat);
                self.replicas.replace_when_ended(seat).await;
                taken
            }
            Fault::CutFromPeers | Fault::HoldFromPeers => {
                let cable = self.replicas.peers(seat);
                if fault == Fault::CutFromPeers {
                    cable.cut()
                } else {
                    cable.hold()
                }
                moment(Instant::now() + CUT).await;
                cable.mend();
                TakenOver::default()
            }
            Fault::CutFromDatabase | Fault::HoldFromDatabase => {
                let cable = self.replicas.database(seat);
                if fault == Fault::CutFromDatabase {
                    cable.cut()
                } else {
                    cable.hold()
                }
                let mend = Instant::now() + AWAY;
                let taken = self.taken_over(&window.threads, &boot, &since).await;
                moment(mend.max(Instant::now())).await;
                self.replicas.database(seat).mend();
                self.replicas.replace_when_ended(seat).await;
                taken
            }
        };
        window.to_ns = boot_clock_ns() + SETTLE_NS;
        println!(
            "  {fault:?} of seat {seat}: {} sessions, {under_way} calls under way, {:.1} s; {taken:?}",
            window.threads.len(),
            (window.to_ns - SETTLE_NS - window.from_ns) as f64 / 1e9
        );
        Done { fault, window, under_way, taken }
    }
}

async fn storm(faults: &[Fault], tail: Duration) {
    let mut stand = Stand::open(3, "sessions:\n  max_live: 400\n").await;
    let mut chance = stand.scale.chance();
    let threads = threads(KEYS);
    stand.warm(&threads).await;
    let load = Load { threads, per_minute: PER_MINUTE, slow: 0.05, slow_takes: Duration::from_secs(1) };
    let (over, is_over) = tokio::sync::oneshot::channel::<()>();
    let load = tokio::spawn(load.run(stand.balancer(), chance.part(), is_over));
    let mut done = Vec::new();
    for fault in faults {
        moment(Instant::now() + Duration::from_secs(2)).await;
        done.push(stand.harm(*fault, &mut chance).await);
    }
    moment(Instant::now() + tail).await;
    drop(over);
    load.await.unwrap();
    let verdict = stand.judge(&format!("A6, 3 replicas, {KEYS} keys, {faults:?}")).await;
    judge(&verdict, &done, stand.scale.program.is_some());
    stand.replicas.stop().await;
}

/// `is_measured` = the build is one whose figures count.
fn judge(verdict: &Verdict, done: &[Done], is_measured: bool) {
    verdict.assert_safe();
    let windows: Vec<Window> = done.iter().map(|done| done.window.clone()).collect();
    let elsewhere: Vec<_> = verdict.failed_elsewhere(&windows).collect();
    assert!(elsewhere.is_empty(), "{} calls failed that no fault touched: {:#?}", elsewhere.len(), elsewhere);
    let untold: Vec<_> = verdict.untold_elsewhere(&windows).collect();
    assert!(untold.is_empty(), "restarts that nobody was told of: {untold:?}");
    let (unknown, near) = (verdict.unknown().count(), verdict.near(&windows).count());
    println!("  {unknown} unknown of {near} calls that a fault was near to");
    assert!(unknown <= near, "{unknown} are unknown, {near} were in flight at faults");
    for Done { fault, window, taken, .. } in done {
        let bound = match fault {
            Fault::Kill => PROVED_MS,
            Fault::Freeze | Fault::CutFromDatabase | Fault::HoldFromDatabase => UNPROVED_MS,
            Fault::CutFromPeers | Fault::HoldFromPeers => continue,
        };
        let last = |of: &[u64]| of.iter().max().copied().unwrap_or_default();
        if is_measured {
            assert!(last(&taken.rows_ms) <= bound, "{fault:?}: {taken:?}");
        }
        // All but the first stand in line for the start of their children.
        let first = taken.rows_ms.iter().min().copied().unwrap_or_default();
        assert!(first <= bound + LOADED_MS, "{fault:?}: {taken:?}");
        assert!(last(&taken.children_ms) <= bound + BRING_UP_MS, "{fault:?}: {taken:?}");
        assert!(last(&taken.answers_ms) <= bound + BRING_UP_MS, "{fault:?}: {taken:?}");
        // It has bitten: there were sessions to take over.
        assert!(taken.rows_ms.len() >= 3, "{fault:?} of {} sessions: {taken:?}", window.threads.len());
    }
    let lost = done.iter().filter(|done| !done.taken.rows_ms.is_empty()).count() as u64;
    assert!(verdict.taken_over >= 6 * lost, "{} sessions were taken over in {lost} faults", verdict.taken_over);
    assert!(done.iter().any(|done| done.under_way > 0), "no call was under way at any fault");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_outlast_replicas_that_are_killed_frozen_and_cut_off() {
    // Durability.md A6; invariants L1, L2, S1 to S3.
    let short = [Fault::Kill, Fault::Freeze, Fault::CutFromPeers, Fault::CutFromDatabase];
    let long = [
        Fault::Kill,
        Fault::Freeze,
        Fault::HoldFromPeers,
        Fault::HoldFromDatabase,
        Fault::Kill,
        Fault::CutFromPeers,
        Fault::CutFromDatabase,
        Fault::Freeze,
        Fault::Kill,
        Fault::HoldFromPeers,
    ];
    let is_full = crate::scale::Scale::read().is_full;
    storm(if is_full { &long } else { &short }, Duration::from_secs(5)).await;
}
