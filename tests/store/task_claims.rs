//! Work on tasks is claimed by one at a time, and only whoever holds the newest claim writes (invariants C1, C2, T4).

use std::collections::BTreeSet;
use std::time::Duration;

use caribou_core::ids::{BootId, Epoch};
use caribou_core::task::{Duty, Pin, Shard, SnapshotFingerprint, Status, TaskId};
use caribou_ports::store::{
    AttemptFailed, CancelRequested, ClaimTasks, ClaimedTask, Handle, Recorded, Renewal, Renewed, Replica, Replicas,
    Settled, TaskIntent, Unchanged,
};
use caribou_tests::eventually;
use rstest::rstest;

use crate::following::*;
use crate::opened::{Kind, Opened, Store};

fn failed(duty: Duty) -> AttemptFailed {
    AttemptFailed { duty, error: "no answer".to_owned(), again: Duration::ZERO, event: None, sinks: Vec::new() }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_claim_at_once_each_task_goes_to_one(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Durability.md I1, I2; contract 6.5, claim due.
    let store = Opened::new(kind).await;
    for number in 0..60 {
        followed(&*store, number).await;
    }
    let claimers = (0..6).map(|number| {
        let store = &store;
        async move {
            let owner = if number % 2 == 0 { OURS } else { THEIRS };
            let mut claimed = Vec::new();
            loop {
                let some = store.claim_due(ClaimTasks { at_most: 8, ..wanted(owner, Duty::Poll, LONG) });
                let some = some.await.unwrap();
                assert!(some.len() <= 8);
                if some.is_empty() {
                    break claimed;
                }
                claimed.extend(some.into_iter().map(|task| (task.claim.task, task.claim.token.seq)));
            }
        }
    });
    let claimed: Vec<_> = futures::future::join_all(claimers).await.concat();
    let tasks: BTreeSet<_> = claimed.iter().map(|(task, _)| *task).collect();
    assert_eq!((claimed.len(), tasks.len()), (60, 60));
    assert!(claimed.iter().all(|(_, seq)| *seq == 2), "each claimed once after its submit");
}

#[rstest]
#[tokio::test]
async fn whoever_lost_a_claim_writes_nothing(#[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    // Invariant C1; contract 6.5, apply result only if.
    let store = Opened::new(kind).await;
    let task = followed(&*store, 1).await;
    let old = claim_one(&*store, OURS, Duty::Poll, BRIEF).await;
    let new = claim_one(&*store, OURS, Duty::Poll, LONG).await;
    assert_eq!(new.claim.token.seq, old.claim.token.seq + 1, "the same owner again");
    let lost = vec![old.claim.clone()];
    let change = moved(&old, completed());
    assert_eq!(store.apply(old.claim.clone(), change, LONG).await.unwrap(), Settled::Fenced);
    assert_eq!(store.put_off(old.claim.clone(), failed(Duty::Poll)).await.unwrap(), Settled::Fenced);
    assert_eq!(store.withdraw(old.claim.clone()).await.unwrap(), Settled::Fenced);
    assert_eq!(store.settle_answers(old.claim.clone(), Vec::new(), LONG).await.unwrap(), Settled::Fenced);
    assert_eq!(store.record(old.claim.clone(), handle(9)).await.unwrap(), Recorded::Fenced);
    assert_eq!(store.renew(lost.clone(), LONG).await.unwrap(), lost);
    let unchanged = Unchanged { claim: old.claim.clone(), again: Duration::ZERO };
    assert_eq!(store.keep(vec![unchanged]).await.unwrap(), lost);
    store.release(lost, Duration::ZERO).await.unwrap();
    let stored = store.read_task(task, None).await.unwrap().unwrap();
    assert_eq!((stored.snapshot.status, stored.version, stored.poll_errors), (Status::Submitted, 1, 0));
    assert!(claim(&*store, THEIRS, Duty::Poll, LONG).await.is_empty(), "the newer claim holds");
    let change = moved(&new, working());
    assert_eq!(store.apply(new.claim, change, LONG).await.unwrap(), Settled::Settled);
}

#[rstest]
#[tokio::test]
async fn an_expired_claim_is_refused_although_nobody_took_the_task(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Contract 6, boundary notes: the same worker's result after its own lease expired.
    let store = Opened::new(kind).await;
    followed(&*store, 1).await;
    let claimed = claim_one(&*store, OURS, Duty::Poll, BRIEF).await;
    let due = async || (store.next_due(all_lanes()).await.unwrap() == Some(Duration::ZERO)).then_some(());
    eventually(WITHIN, "the claim expires", due).await;
    let change = moved(&claimed, completed());
    assert_eq!(store.apply(claimed.claim.clone(), change, LONG).await.unwrap(), Settled::Fenced);
    assert_eq!(store.renew(vec![claimed.claim.clone()], LONG).await.unwrap(), std::slice::from_ref(&claimed.claim));
    store.release(vec![claimed.claim], Duration::ZERO).await.unwrap();
    let again = claim_one(&*store, THEIRS, Duty::Poll, LONG).await;
    assert_eq!(store.renew(vec![again.claim.clone()], LONG).await.unwrap(), []);
    let change = moved(&again, completed());
    assert_eq!(store.apply(again.claim, change, LONG).await.unwrap(), Settled::Settled);
}

#[rstest]
#[tokio::test]
async fn a_request_to_cancel_fences_the_poll_and_only_the_cancel_ends_the_task(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Invariant C2; contract 6.10.
    let store = Opened::new(kind).await;
    let task = followed(&*store, 1).await;
    let poll = claim_one(&*store, OURS, Duty::Poll, LONG).await;
    let theirs = caribou_core::ids::Scope::new(Some("bob"), Some("t"));
    assert_eq!(store.request_cancel(task, Some(theirs)).await.unwrap(), CancelRequested::NotFound);
    assert_eq!(store.request_cancel(id(9), None).await.unwrap(), CancelRequested::NotFound);
    assert_eq!(store.request_cancel(task, Some(ann())).await.unwrap(), CancelRequested::Requested);
    let change = moved(&poll, completed());
    assert_eq!(store.apply(poll.claim.clone(), change, LONG).await.unwrap(), Settled::Fenced);
    store.release(vec![poll.claim], Duration::ZERO).await.unwrap();
    assert!(claim(&*store, OURS, Duty::Poll, LONG).await.is_empty(), "polling has stopped");

    let first = claim_one(&*store, OURS, Duty::Cancel, LONG).await;
    assert_eq!((first.duty, first.attempts), (Duty::Cancel, 1));
    assert_eq!(store.request_cancel(task, None).await.unwrap(), CancelRequested::Already);
    assert!(claim(&*store, THEIRS, Duty::Cancel, LONG).await.is_empty(), "one attempt at a time");
    assert_eq!(store.put_off(first.claim, failed(Duty::Cancel)).await.unwrap(), Settled::Settled);
    let stored = store.read_task(task, Some(ann())).await.unwrap().unwrap();
    assert_eq!((stored.is_cancel_requested, stored.cancel_attempts, stored.poll_errors), (true, 1, 0));
    assert_eq!(stored.last_cancel_error.as_deref(), Some("no answer"));

    let second = claim_one(&*store, THEIRS, Duty::Cancel, LONG).await;
    assert_eq!(second.attempts, 2);
    let change = moved(&second, completed());
    assert_eq!(store.apply(second.claim, change, LONG).await.unwrap(), Settled::Settled);
    let stored = store.read_task(task, None).await.unwrap().unwrap();
    assert_eq!((stored.snapshot.status, stored.cancel_attempts), (Status::Completed, 2), "how it really ended");
    assert_eq!(stored.last_cancel_error, None);
    assert_eq!(store.request_cancel(task, None).await.unwrap(), CancelRequested::Ended);
}

#[rstest]
#[tokio::test]
async fn a_task_that_kills_its_workers_is_worked_on_alone_and_then_failed(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Durability.md I10; architecture.md §10, poison.
    let store = Opened::new(kind).await;
    followed(&*store, 1).await;
    for _ in 0..3 {
        let claimed = claim_one(&*store, OURS, Duty::Poll, BRIEF).await;
        assert!(!claimed.is_poisoned);
    }
    let moved_on = async || {
        assert!(claim(&*store, OURS, Duty::Poll, BRIEF).await.is_empty(), "a fourth claim among others");
        let quarantine = Duty::Quarantine.lanes().collect();
        store.next_due(quarantine).await.unwrap()
    };
    eventually(WITHIN, "the task is in quarantine", moved_on).await;
    for _ in 0..2 {
        let alone = claim_one(&*store, OURS, Duty::Quarantine, BRIEF).await;
        assert_eq!((alone.duty, alone.is_poisoned), (Duty::Poll, false));
    }
    let poisoned = claim_one(&*store, OURS, Duty::Quarantine, LONG).await;
    assert!(poisoned.is_poisoned);
    let end = moved(&poisoned, caribou_core::task::Snapshot::ended(Status::Failed, "given up"));
    assert_eq!(store.apply(poisoned.claim, end, LONG).await.unwrap(), Settled::Settled);
    assert_eq!(store.next_due(all_lanes()).await.unwrap(), None);
}

#[rstest]
#[tokio::test]
async fn a_task_that_answers_in_quarantine_is_one_like_others_again(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // architecture.md §10, poison.
    let store = Opened::new(kind).await;
    followed(&*store, 1).await;
    for after in 0..3 {
        for _ in 0..3 {
            claim_one(&*store, OURS, Duty::Poll, BRIEF).await;
        }
        let moved_on = async || {
            claim(&*store, OURS, Duty::Poll, BRIEF).await;
            claim(&*store, OURS, Duty::Quarantine, LONG).await.pop()
        };
        let alone = eventually(WITHIN, "the task is in quarantine", moved_on).await;
        match after {
            0 => drop(store.put_off(alone.claim, failed(Duty::Poll)).await.unwrap()),
            1 => drop(store.apply(alone.claim.clone(), moved(&alone, working()), Duration::ZERO).await.unwrap()),
            _ => drop(store.keep(vec![Unchanged { claim: alone.claim, again: Duration::ZERO }]).await.unwrap()),
        }
    }
    let claimed = claim_one(&*store, OURS, Duty::Poll, LONG).await;
    assert_eq!((claimed.duty, claimed.poll_errors), (Duty::Poll, 0));
}

#[rstest]
#[tokio::test]
async fn what_is_given_back_counts_for_nothing(#[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    // Contract 6.5, stop; durability.md 1.5, release.
    let store = Opened::new(kind).await;
    let task = followed(&*store, 1).await;
    let claimed = claim_one(&*store, OURS, Duty::Poll, LONG).await;
    assert_eq!(store.put_off(claimed.claim, failed(Duty::Poll)).await.unwrap(), Settled::Settled);
    for _ in 0..6 {
        let claimed = claim_one(&*store, OURS, Duty::Poll, LONG).await;
        assert_eq!(claimed.poll_errors, 1);
        store.release(vec![claimed.claim], Duration::ZERO).await.unwrap();
    }
    store.request_cancel(task, None).await.unwrap();
    for _ in 0..6 {
        let claimed = claim_one(&*store, OURS, Duty::Cancel, LONG).await;
        assert_eq!(claimed.attempts, 1);
        store.release(vec![claimed.claim], Duration::ZERO).await.unwrap();
    }
}

#[rstest]
#[tokio::test]
async fn shards_overdue_and_foreign_configurations_are_left_to_others(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // architecture.md §10: soft shards, and tasks of a configuration that another replica has.
    let store = Opened::new(kind).await;
    followed(&*store, 1).await;
    let changed = SnapshotFingerprint::of("as it is after an edit");
    let other = intended(&*store, TaskIntent { snapshot: changed, ..intent(2) }).await;
    assert_eq!(store.record(other, handle(2)).await.unwrap(), Recorded::Recorded);
    let due = wanted(OURS, Duty::Poll, LONG);
    let shards = Shard::all().filter(|shard| *shard != Shard::of(id(1)) && *shard != Shard::of(id(2))).collect();
    for none in [
        ClaimTasks { shards, ..due.clone() },
        ClaimTasks { overdue: LONG, ..due.clone() },
        ClaimTasks { at_most: 0, ..due.clone() },
        ClaimTasks { not_of: vec![configuration(), changed], ..due.clone() },
    ] {
        assert_eq!(store.claim_due(none).await.unwrap(), []);
    }
    let ours = store.claim_due(ClaimTasks { not_of: vec![changed], ..due.clone() });
    let ours: Vec<_> = ours.await.unwrap().into_iter().map(|task| task.claim.task).collect();
    assert_eq!(ours, [id(1)]);
    let left = store.claim_due(due).await.unwrap();
    assert_eq!((left.len(), left[0].configuration), (1, changed), "whoever does not leave it takes it");
}

#[rstest]
#[tokio::test]
async fn what_a_dead_replica_held_is_due_at_once(#[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    // architecture.md §10, rows of a dead replica; invariant T4.
    let store = Opened::new(kind).await;
    for boot in [OURS, THEIRS] {
        let replica = Replica::alone(boot.into(), "pod", "0");
        store.begin(replica).await.unwrap();
    }
    followed(&*store, 1).await;
    let dead = claim_one(&*store, OURS, Duty::Poll, LONG).await;
    followed(&*store, 2).await;
    let live = claim_one(&*store, THEIRS, Duty::Poll, LONG).await;
    assert_eq!(store.take_back(OURS.into(), LONG).await.unwrap(), 0, "a live one keeps what it holds");
    store.end(OURS.into()).await.unwrap();
    assert_eq!(store.take_back(OURS.into(), Duration::ZERO).await.unwrap(), 0, "only up to its longest lease");
    assert_eq!(store.take_back(OURS.into(), LONG).await.unwrap(), 1);
    let change = moved(&dead, completed());
    assert_eq!(store.apply(dead.claim, change, LONG).await.unwrap(), Settled::Fenced);
    let taken = claim_one(&*store, THEIRS, Duty::Poll, LONG).await;
    assert_eq!((taken.claim.task, taken.claim.token.seq), (id(1), 3));
    let change = moved(&live, completed());
    assert_eq!(store.apply(live.claim, change, LONG).await.unwrap(), Settled::Settled);
}

#[rstest]
#[tokio::test]
async fn what_was_left_to_a_replica_is_due_with_its_death_and_moves_to_whoever_takes_it(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // architecture.md §10, pinned tasks; invariant C1.
    let store = Opened::new(kind).await;
    for boot in [OURS, THEIRS] {
        let replica = Replica::alone(boot.into(), "pod", "0");
        store.begin(replica).await.unwrap();
    }
    let task = pinned(&*store, 1, OURS).await;
    let held = claim_one(&*store, OURS, Duty::Poll, LONG).await;
    store.keep(vec![Unchanged { claim: held.claim.clone(), again: LONG }]).await.unwrap();
    assert_eq!(store.take_back(OURS.into(), LONG).await.unwrap(), 0, "it lives");
    store.end(OURS.into()).await.unwrap();
    assert_eq!(store.take_back(OURS.into(), LONG).await.unwrap(), 1);
    let taken = claim_one(&*store, THEIRS, Duty::Poll, LONG).await;
    assert!(taken.claim.task == task && taken.is_lost);
    let pin = Pin { boot: THEIRS.into(), epoch: Epoch(7) };
    assert_eq!(store.move_pin(held.claim, pin.clone()).await.unwrap(), Settled::Fenced);
    assert_eq!(store.move_pin(taken.claim.clone(), pin.clone()).await.unwrap(), Settled::Settled);
    store.release(vec![taken.claim], Duration::ZERO).await.unwrap();
    let again = claim_one(&*store, THEIRS, Duty::Poll, LONG).await;
    assert_eq!((again.is_lost, again.session_id), (false, Some(pin.to_string())));
}

#[rstest]
#[tokio::test]
async fn a_lease_is_renewed_until_the_life_is_declared_dead_by_somebody_who_saw_it_stand_still(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Durability.md 2.2, replica lease.
    let store = Opened::new(kind).await;
    let boot = BootId::from(OURS);
    let renewal = |lease| Renewal { boot: boot.clone(), lease, configurations: vec![configuration()], load: 0.0 };
    assert_eq!(store.renew_lease(renewal(LONG)).await.unwrap(), Renewed::Dead, "it never began");
    let replica = Replica::alone(boot.clone(), "pod", "0");
    store.begin(replica).await.unwrap();
    assert_eq!(store.renew_lease(renewal(LONG)).await.unwrap(), Renewed::Renewed { renewals: 1 });
    let stored = Replicas::list(&*store).await.unwrap().remove(0);
    assert_eq!((stored.renewals, &stored.configurations[..]), (1, &[configuration()][..]));
    assert!(stored.lease_left > LONG / 2, "{stored:?}");
    assert!(!store.declare_dead(boot.clone(), 1).await.unwrap(), "its lease holds");
    assert_eq!(store.renew_lease(renewal(BRIEF)).await.unwrap(), Renewed::Renewed { renewals: 2 });
    let is_over = async || {
        let stored = Replicas::list(&*store).await.unwrap().remove(0);
        stored.lease_left.is_zero().then_some(())
    };
    eventually(WITHIN, "the lease is over", is_over).await;
    assert!(!store.declare_dead(boot.clone(), 1).await.unwrap(), "it has renewed since it was looked at");
    let declared = async || store.declare_dead(boot.clone(), 2).await.unwrap().then_some(());
    eventually(WITHIN, "the life is declared dead", declared).await;
    assert!(!store.declare_dead(boot.clone(), 2).await.unwrap(), "once");
    assert_eq!(store.renew_lease(renewal(LONG)).await.unwrap(), Renewed::Dead, "dead is final");
}

/// A task that lives in a session of this replica.
async fn pinned(store: &dyn Store, number: u8, boot: &str) -> TaskId {
    let claim = intended(store, TaskIntent { is_pinned: true, ..intent(number) }).await;
    let pin = Pin { boot: boot.into(), epoch: Epoch(7) };
    let handle = Handle { session_id: Some(pin.to_string()), ..handle(number) };
    assert_eq!(store.record(claim, handle).await.unwrap(), Recorded::Recorded);
    id(number)
}

#[rstest]
#[tokio::test]
async fn what_is_pinned_to_a_replica_is_left_to_it_until_it_has_ended(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // architecture.md §10, pinned tasks; invariant T4.
    let store = Opened::new(kind).await;
    for boot in [OURS, THEIRS] {
        let replica = Replica::alone(boot.into(), "pod", "0");
        store.begin(replica).await.unwrap();
    }
    for (number, boot) in [(1, OURS), (2, THEIRS), (3, THEIRS)] {
        pinned(&*store, number, boot).await;
    }
    followed(&*store, 4).await;
    let due = async || (store.next_due(all_lanes()).await.unwrap() == Some(Duration::ZERO)).then_some(());
    eventually(WITHIN, "they are due", due).await;
    let claimed = |tasks: Vec<ClaimedTask>| {
        let mut claimed: Vec<_> =
            tasks.into_iter().map(|task| (task.claim.task, task.is_pinned, task.is_lost)).collect();
        claimed.sort_unstable();
        claimed
    };
    let ours = claimed(claim(&*store, OURS, Duty::Poll, LONG).await);
    assert_eq!(ours, [(id(1), true, false), (id(4), false, false)]);
    // Nobody else comes for what is pinned, so that it need not be overdue.
    let overdue = ClaimTasks { overdue: LONG, ..wanted(THEIRS, Duty::Poll, LONG) };
    let theirs = store.claim_due(overdue).await.unwrap();
    store.release(theirs.iter().map(|task| task.claim.clone()).collect(), Duration::ZERO).await.unwrap();
    assert_eq!(claimed(theirs), [(id(2), true, false), (id(3), true, false)]);
    eventually(WITHIN, "they are due again", due).await;
    assert_eq!(claim(&*store, OURS, Duty::Poll, LONG).await, []);
    assert_eq!(store.request_cancel(id(2), None).await.unwrap(), CancelRequested::Requested);
    assert_eq!(claim(&*store, OURS, Duty::Cancel, LONG).await, [], "nor is it cancelled elsewhere");

    store.end(THEIRS.into()).await.unwrap();
    assert_eq!(store.forget_replicas(LONG).await.unwrap(), 0);
    assert_eq!(claimed(claim(&*store, OURS, Duty::Cancel, LONG).await), [(id(2), true, true)]);
    assert_eq!(store.forget_replicas(Duration::ZERO).await.unwrap(), 1);
    assert_eq!(claimed(claim(&*store, OURS, Duty::Poll, LONG).await), [(id(3), true, true)], "nor is it on record");
}
