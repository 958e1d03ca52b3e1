//! The cells of contract 6.9, and the histories that they make up.

use super::*;

fn limits() -> TaskLimits {
    TaskLimits::default()
}

fn launching() -> Delivery {
    Delivery::first(1).reserve(1).unwrap()
}

fn launched() -> Delivery {
    Delivery { phase: Phase::Launched, run_id: Some("run".to_owned()), ..launching() }
}

fn stays(after: After) -> (Delivery, Option<u64>) {
    let After::Stays { delivery, due } = after else { panic!("the row stays") };
    (delivery, due.map(|due| due.as_secs()))
}

fn why() -> String {
    "why".to_owned()
}

#[test]
fn a_launch_is_reserved_for_the_newest_event_only() {
    // Contract 6.9, launching: a stale snapshot is refused before launching.
    let pending = Delivery::first(2);
    assert_eq!(pending.step(), Step::Reserve(2));
    assert_eq!(pending.clone().reserve(1), None);
    let reserved = pending.reserve(2).unwrap();
    assert_eq!((reserved.phase, reserved.launched, reserved.step()), (Phase::Launching, Some(2), Step::LaunchAgain(2)));
    assert_eq!(reserved.reserve(2), None, "one launch at a time");
    assert_eq!(launched().reserve(1), None);
}

#[test]
fn a_launch_that_succeeds_is_looked_after_at_once_until_its_run_has_ended() {
    // Contract 6.9, claimed and dispatched.
    let (now, due) = stays(launching().after(Happened::Launched { run_id: "r7".to_owned() }, &limits()));
    assert_eq!((now.phase, now.run_id.as_deref(), due), (Phase::Launched, Some("r7"), Some(0)));
    assert_eq!(now.step(), Step::LookUp(1));
    let (active, due) = stays(now.clone().after(Happened::Active, &limits()));
    assert_eq!((active, due), (now.clone(), Some(5)), "not counted");
    assert_eq!(now.after(Happened::Succeeded, &limits()), After::Done);
    assert_eq!(launching().after(Happened::Taken, &limits()), After::Done);
}

#[test]
fn a_failed_run_is_launched_again_under_a_new_key() {
    // Contract 6.9, failed delivery; backoff 20 s at 2 failures.
    let before = Delivery { failures: 2, ..launched() };
    let (now, due) = stays(before.after(Happened::Failed(why()), &limits()));
    assert_eq!((now.phase, now.attempt, now.failures, due), (Phase::Retry, 1, 3, Some(20)));
    assert_eq!(now.run_id, None);
    let again = now.reserve(1).unwrap();
    assert_eq!((again.attempt, again.failures), (1, 3));
}

#[test]
fn a_refused_launch_counts_and_keeps_its_key() {
    // Contract 6.9, other launch error; 40 s at 3 failures.
    let before = Delivery { failures: 3, ..launching() };
    let key = before.key(TaskId([1; 16]));
    let (now, due) = stays(before.after(Happened::Refused(why()), &limits()));
    assert_eq!((now.phase, now.failures, now.attempt, due), (Phase::Pending, 4, 0, Some(40)));
    let again = now.reserve(1).unwrap();
    assert_eq!((again.key(TaskId([1; 16])), again.failures), (key, 4));
}

#[test]
fn a_launch_of_which_nobody_knows_keeps_key_and_words_and_does_not_count() {
    // Invariant N1; contract 6.9, launching: reconciliation.
    let (now, due) = stays(launching().after(Happened::Unclear(why()), &limits()));
    assert_eq!((now.phase, now.failures, due), (Phase::Launching, 0, Some(5)));
    let (newer, is_due) = now.newer(2);
    assert_eq!((newer.step(), is_due), (Step::LaunchAgain(1), false), "the newer event waits");
    let (later, due) = stays(newer.after(Happened::Unclear(why()), &limits()));
    assert_eq!((later.unclear, due), (2, Some(10)));
}

#[test]
fn a_busy_thread_is_waited_for_and_hears_the_latest_event() {
    // Contract 6.9, thread busy.
    let (newer, _) = launching().newer(2);
    let (now, due) = stays(newer.after(Happened::Busy, &limits()));
    assert_eq!((now.phase, now.failures, due, now.step()), (Phase::Pending, 0, Some(5), Step::Reserve(2)));
    assert_eq!(now.reserve(2).unwrap().attempt, 0);
}

#[test]
fn nothing_changes_while_nobody_is_there() {
    // Invariant N1: what may have been sent before keeps its key and its words; no failure is counted.
    let unclear = Delivery { unclear: 2, failures: 3, newest: 2, ..launching() };
    for delivery in [unclear, launched(), Delivery::first(1)] {
        assert_eq!(stays(delivery.clone().after(Happened::NobodyThere, &limits())), (delivery, Some(0)));
    }
}

#[test]
fn a_thread_that_is_gone_ends_the_delivery_at_once() {
    // Contract 6.9, thread missing.
    let (now, due) = stays(launching().after(Happened::Gone(why()), &limits()));
    assert_eq!((now.phase, now.failures, due, now.error), (Phase::DeadLetter, 1, None, Some(why())));
}

#[test]
fn a_run_that_cannot_be_looked_up_stays_as_it_is_and_counts() {
    // Contract 6.9, lookup throws.
    let (now, due) = stays(launched().after(Happened::NotLookedUp(why()), &limits()));
    let expected = Delivery { failures: 1, error: Some(why()), ..launched() };
    assert_eq!((now, due), (expected, Some(5)));
}

#[test]
fn five_failures_end_it_before_anything_is_sent_or_looked_up() {
    // Contract 6.9, any phase.
    for phase in [Phase::Pending, Phase::Launching, Phase::Launched, Phase::Retry] {
        let spent = Delivery { phase, failures: MAX_FAILURES, ..launched() };
        assert_eq!(spent.step(), Step::GiveUp, "{phase:?}");
        let (dead, due) = stays(spent.after(Happened::GaveUp, &limits()));
        assert_eq!((dead.phase, dead.run_id, due), (Phase::DeadLetter, None, None));
    }
    let waits: Vec<u64> = (0..5).map(|failures| limits().backoff(failures).as_secs()).collect();
    assert_eq!(waits, [5, 10, 20, 40, 80]);
}

#[test]
fn a_newer_event_starts_with_a_clean_count() {
    // Contract 6.9, claim of a retry whose version is not the newest.
    let retry = Delivery { phase: Phase::Retry, attempt: 4, failures: 5, run_id: None, ..launched() };
    let (newer, is_due) = retry.newer(2);
    assert_eq!((newer.step(), is_due), (Step::Reserve(2), false));
    let reserved = newer.reserve(2).unwrap();
    assert_eq!((reserved.attempt, reserved.failures, reserved.launched), (0, 0, Some(2)));
}

#[test]
fn an_event_that_comes_while_an_older_one_is_under_way_is_told_next() {
    // Contract 6.9, delivered and dead letter with a newer event; invariant N1, in order.
    let (newer, is_due) = launched().newer(2);
    assert_eq!((newer.step(), is_due), (Step::LookUp(1), false), "the launched words stay");
    assert_eq!(newer.key(TaskId([1; 16])).seq, 1);
    for happened in [Happened::Succeeded, Happened::GaveUp, Happened::Gone(why())] {
        let (next, due) = stays(newer.clone().after(happened, &limits()));
        assert_eq!((next, due), (Delivery::first(2), Some(0)));
    }
}

#[test]
fn what_was_given_up_is_taken_up_by_a_newer_event_or_by_hand() {
    // Contract 6.9, dead letter.
    let dead = Delivery { phase: Phase::DeadLetter, attempt: 2, failures: 5, run_id: None, ..launched() };
    assert_eq!(dead.clone().newer(2), (Delivery::first(2), true));
    let again = dead.taken_up().unwrap();
    assert_eq!((again.phase, again.attempt, again.failures), (Phase::Pending, 2, 0), "the key it had");
    assert_eq!(launched().taken_up(), None);
    assert_eq!(Delivery::first(1).taken_up(), None);
}

#[test]
fn an_event_that_is_not_launched_is_replaced() {
    // Durability.md 1.9.
    let refused = Delivery { failures: 3, launched: Some(1), ..Delivery::first(1) };
    assert_eq!(refused.newer(2), (Delivery::first(2), true));
}
