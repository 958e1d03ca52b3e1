//! The record of a task, from the intent to the day it is forgotten (invariants T1, T2, T3, T4).

use std::time::Duration;

use caribou_core::ids::{Scope, ThreadId, UserId};
use caribou_core::notification::Notified;
use caribou_core::task::input::Answer;
use caribou_core::task::{Duty, Snapshot, Status};
use caribou_ports::store::{
    AnswerStored, AttemptFailed, BroughtAnswer, CancelRequested, Handle, NewAnswer, Noted, PageKey, Recorded, Settled,
    SubmitKey, TaskFilter, TaskIntent, Unchanged,
};
use caribou_tests::eventually;
use rstest::rstest;

use crate::following::*;
use crate::opened::{Kind, Opened};

#[rstest]
#[tokio::test]
async fn nobody_hears_of_an_intent_and_one_submit_makes_one_task(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Invariant T1; contract 6.4.
    let store = Opened::new(kind).await;
    let claim = intended(&*store, intent(1)).await;
    assert_eq!(store.read_task(id(1), None).await.unwrap(), None);
    assert_eq!(store.list_tasks(TaskFilter::default(), None, 10).await.unwrap(), []);
    assert_eq!(store.count_tasks(TaskFilter::default()).await.unwrap(), 0);
    assert_eq!(store.request_cancel(id(1), None).await.unwrap(), CancelRequested::NotFound);
    let repeat = TaskIntent { task: id(2), ..intent(1) };
    let existing = Noted::Existing { task: id(1), status: Status::Intended };
    assert_eq!(store.note_intent(repeat.clone()).await.unwrap(), existing);
    let one_too_many = TaskIntent { at_most: 1, ..intent(3) };
    assert_eq!(store.note_intent(one_too_many).await.unwrap(), Noted::Full);
    let of_bob = TaskIntent { at_most: 1, scope: Scope::new(Some("bob"), None), ..intent(4) };
    intended(&*store, of_bob).await;

    assert_eq!(store.withdraw(claim.clone()).await.unwrap(), Settled::Settled);
    assert_eq!(store.withdraw(claim).await.unwrap(), Settled::Fenced);
    let again = intended(&*store, repeat).await;
    assert_eq!(store.record(again.clone(), handle(2)).await.unwrap(), Recorded::Recorded);
    assert_eq!(store.withdraw(again).await.unwrap(), Settled::Fenced, "a task that is followed is not taken back");
    let stored = store.read_task(id(2), Some(ann())).await.unwrap().unwrap();
    assert_eq!((stored.snapshot, stored.version), (Snapshot::bare(Status::Submitted), 1));
    assert_eq!((stored.task_name.as_str(), stored.notified), ("report", Notified::None));
}

#[rstest]
#[tokio::test]
async fn one_remote_task_is_followed_once_for_each_user(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Contract 6.4, unique conflict; contract 6.3, uq_mcp_tasks_user_server_remote.
    let store = Opened::new(kind).await;
    followed(&*store, 1).await;
    let second = intended(&*store, intent(2)).await;
    let same = Handle { change: handle(2).change, ..handle(1) };
    assert_eq!(store.record(second.clone(), same.clone()).await.unwrap(), Recorded::Duplicate);
    assert_eq!(store.withdraw(second).await.unwrap(), Settled::Fenced, "nothing is left of the second");
    assert!(matches!(store.note_intent(intent(2)).await.unwrap(), Noted::Intended(_)));
    for (number, scope, server) in [(3, Scope::new(Some("bob"), Some("t")), "jobs"), (4, ann(), "other")] {
        let claim = intended(&*store, TaskIntent { scope, server: server.into(), ..intent(number) }).await;
        let same = Handle { change: handle(number).change, ..handle(1) };
        assert_eq!(store.record(claim, same).await.unwrap(), Recorded::Recorded);
    }
    assert_eq!(store.count_tasks(TaskFilter::default()).await.unwrap(), 3);
}

#[rstest]
#[tokio::test]
async fn an_abandoned_intent_becomes_an_unknown_outcome(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Durability.md 1.5, submit; I7.
    let store = Opened::new(kind).await;
    let lost = intended(&*store, TaskIntent { lease: BRIEF, ..intent(1) }).await;
    let found = claim_one(&*store, THEIRS, Duty::Submit, LONG).await;
    assert_eq!((found.duty, found.remote_id.as_deref()), (Duty::Submit, None));
    assert_eq!(store.record(lost.clone(), handle(1)).await.unwrap(), Recorded::Fenced, "the handle came too late");
    let unknown = moved(&found, Snapshot::ended(Status::Unknown, "nobody knows"));
    let wrong = moved(&found, completed());
    assert!(store.mark_unknown(found.claim.clone(), wrong).await.is_err());
    assert_eq!(store.mark_unknown(lost, unknown.clone()).await.unwrap(), Settled::Fenced);
    assert_eq!(store.mark_unknown(found.claim, unknown).await.unwrap(), Settled::Settled);
    let stored = store.read_task(id(1), Some(ann())).await.unwrap().unwrap();
    assert_eq!((stored.snapshot.status, stored.notified), (Status::Unknown, Notified::Pending));
    assert_eq!(store.next_due(all_lanes()).await.unwrap(), None);
    let events = store.events(id(1), 0, 10).await.unwrap();
    assert!(events[0].body.contains("outcome_unknown"), "{events:?}");
}

#[rstest]
#[tokio::test]
async fn the_error_that_a_call_ended_with_is_kept_whole_and_is_no_part_of_lists(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // mcp.md §9.1, tasks/result.
    let store = Opened::new(kind).await;
    let task = followed(&*store, 1).await;
    let claimed = claim_one(&*store, OURS, Duty::Poll, LONG).await;
    let change = moved(&claimed, failed());
    assert_eq!(store.apply(claimed.claim, change, Duration::ZERO).await.unwrap(), Settled::Settled);
    let stored = store.read_task(task, None).await.unwrap().unwrap();
    assert_eq!(stored.snapshot, failed());
    assert!(stored.snapshot.rpc_error.unwrap().contains(RESULT), "byte for byte");
    let listed = store.list_tasks(TaskFilter::default(), None, 10).await.unwrap();
    assert_eq!((&listed[0].snapshot.error, &listed[0].snapshot.rpc_error), (&failed().error, &None));
}

#[rstest]
#[tokio::test]
async fn every_change_is_an_event_in_order_and_the_last_one_is_final(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Invariants T2, T3; durability.md I5.
    let store = Opened::new(kind).await;
    let task = followed(&*store, 1).await;
    for snapshot in [working(), asking(r#"{"q":1}"#), working(), completed()] {
        let claimed = claim_one(&*store, OURS, Duty::Poll, LONG).await;
        let change = moved(&claimed, snapshot.clone());
        assert_eq!(store.apply(claimed.claim.clone(), change.clone(), Duration::ZERO).await.unwrap(), Settled::Settled);
        assert_eq!(store.apply(claimed.claim, change, Duration::ZERO).await.unwrap(), Settled::Fenced, "once");
        let stored = store.read_task(task, None).await.unwrap().unwrap();
        assert_eq!(stored.snapshot, snapshot, "all of it, and nothing of what was before");
        assert!(stored.last_polled_us.is_some());
    }
    let stored = store.read_task(task, None).await.unwrap().unwrap();
    assert_eq!((stored.version, stored.snapshot.result.as_deref()), (5, Some(RESULT)));
    assert!(stored.ended_us >= Some(stored.created_us));
    let events = store.events(task, 0, 10).await.unwrap();
    let told: Vec<_> = events.iter().map(|event| (event.seq, event.status)).collect();
    let statuses = [Status::Submitted, Status::Working, Status::InputRequired, Status::Working, Status::Completed];
    assert_eq!(told, (1..).zip(statuses).collect::<Vec<_>>());
    assert!(events[4].body.contains(r#""a":9223372036854775809123,"nul":"\u0000""#), "{}", events[4].body);
    assert_eq!(store.events(task, 3, 1).await.unwrap(), events[3..4]);
    assert_eq!(store.next_due(all_lanes()).await.unwrap(), None, "nothing is left to be done");
    assert!(claim(&*store, OURS, Duty::Poll, LONG).await.is_empty());
}

#[rstest]
#[tokio::test]
async fn a_task_is_due_again_after_whatever_happened_to_it(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Invariant T4; contract 6.5, outcomes and counts.
    let store = Opened::new(kind).await;
    let task = followed(&*store, 1).await;
    let failed = |error: &str| AttemptFailed {
        duty: Duty::Poll,
        error: error.to_owned(),
        again: Duration::ZERO,
        event: None,
        sinks: Vec::new(),
    };
    for errors in 1..=3 {
        let claimed = claim_one(&*store, OURS, Duty::Poll, LONG).await;
        assert_eq!(store.put_off(claimed.claim, failed("no answer")).await.unwrap(), Settled::Settled);
        let stored = store.read_task(task, None).await.unwrap().unwrap();
        assert_eq!((stored.poll_errors, stored.last_poll_error.as_deref()), (errors, Some("no answer")));
        assert_eq!(stored.last_polled_us, None);
    }
    let claimed = claim_one(&*store, OURS, Duty::Poll, LONG).await;
    assert_eq!(claimed.poll_errors, 3);
    let same = moved(&claimed, Snapshot::bare(Status::Submitted));
    assert_eq!(same.event, None);
    assert_eq!(store.apply(claimed.claim, same, Duration::ZERO).await.unwrap(), Settled::Settled);
    let stored = store.read_task(task, None).await.unwrap().unwrap();
    assert_eq!((stored.poll_errors, stored.last_poll_error, stored.version), (0, None, 1));

    let claimed = claim_one(&*store, OURS, Duty::Poll, LONG).await;
    let kept = Unchanged { claim: claimed.claim, again: Duration::from_secs(300) };
    assert_eq!(store.keep(vec![kept]).await.unwrap(), []);
    assert!(claim(&*store, OURS, Duty::Poll, LONG).await.is_empty());
    let due = store.next_due(all_lanes()).await.unwrap().unwrap();
    assert!(due > Duration::from_secs(200) && due <= Duration::from_secs(300), "{due:?}");
    assert_eq!(store.next_due(Duty::Cancel.lanes().collect()).await.unwrap(), None);
}

#[rstest]
#[tokio::test]
async fn an_answer_is_stored_once_and_brought_before_the_next_poll(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // architecture.md §10, input_tool.
    let store = Opened::new(kind).await;
    let task = followed(&*store, 1).await;
    let give = async |input_id: &str, body: &str| {
        let answer = NewAnswer { input_id: input_id.to_owned(), body: body.to_owned() };
        store.answer(task, Some(ann()), answer).await.unwrap()
    };
    let judged = AnswerStored::Judged;
    assert_eq!(give("a", "{}").await, judged(Answer::NothingAsked));
    let claimed = claim_one(&*store, OURS, Duty::Poll, LONG).await;
    let asked = moved(&claimed, asking(r#"{"q":1}"#));
    assert_eq!(store.apply(claimed.claim, asked, Duration::ZERO).await.unwrap(), Settled::Settled);
    let poll = claim_one(&*store, OURS, Duty::Poll, LONG).await;
    assert!(poll.told.is_some());

    assert!(matches!(give("a", "7").await, AnswerStored::Judged(Answer::Invalid(_))));
    assert!(matches!(give("a", "{").await, AnswerStored::Judged(Answer::Invalid(_))));
    assert_eq!(give("a", r#"{"b":1,"a":2}"#).await, judged(Answer::Store));
    assert_eq!(give("a", r#"{"b":1,"a":2}"#).await, judged(Answer::Same));
    assert_eq!(give("a", r#"{"b":2}"#).await, judged(Answer::Conflict));
    let of_bob = store.answer(
        task,
        Some(Scope::new(Some("bob"), Some("t"))),
        NewAnswer { input_id: "x".to_owned(), body: "{}".to_owned() },
    );
    assert_eq!(of_bob.await.unwrap(), AnswerStored::NotFound);
    let late = moved(&poll, working());
    assert_eq!(store.apply(poll.claim, late, LONG).await.unwrap(), Settled::Fenced, "the poll in flight is fenced");

    let bringing = claim_one(&*store, OURS, Duty::Answer, LONG).await;
    assert_eq!((bringing.duty, bringing.attempts, bringing.told), (Duty::Answer, 1, None));
    assert_eq!(give("b", "{}").await, judged(Answer::Store), "another one meanwhile");
    let waiting = store.waiting_answers(task).await.unwrap();
    let names: Vec<_> = waiting.iter().map(|answer| (answer.input_id.as_str(), answer.body.as_str())).collect();
    assert_eq!(names, [("a", r#"{"b":1,"a":2}"#), ("b", "{}")]);
    let brought = |input_id: &str, refused: Option<&str>| {
        vec![BroughtAnswer { input_id: input_id.to_owned(), refused: refused.map(str::to_owned) }]
    };
    assert_eq!(store.settle_answers(bringing.claim, brought("a", None), LONG).await.unwrap(), Settled::Settled);

    let bringing = claim_one(&*store, OURS, Duty::Answer, LONG).await;
    assert_eq!(store.read_task(task, None).await.unwrap().unwrap().waiting_answers, 1);
    let settled = store.settle_answers(bringing.claim, brought("b", Some("too late")), Duration::ZERO).await;
    assert_eq!(settled.unwrap(), Settled::Settled);
    assert_eq!(store.waiting_answers(task).await.unwrap(), []);
    assert_eq!(store.answered(task).await.unwrap(), ["a", "b"], "whatever became of them");
    let stored = store.read_task(task, None).await.unwrap().unwrap();
    assert_eq!((stored.waiting_answers, stored.last_answer_error.as_deref()), (0, Some("too late")));
    assert_eq!(stored.driver, intent(1).driver);
    assert_eq!(claim_one(&*store, OURS, Duty::Poll, LONG).await.duty, Duty::Poll, "polling goes on");
}

#[rstest]
#[tokio::test]
async fn tasks_are_listed_newest_first_page_by_page_to_whom_they_belong(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Contract 2.3: order, scope.
    let store = Opened::new(kind).await;
    for (number, user, thread, server) in [
        (1, "ann", "t", "jobs"),
        (2, "ann", "u", "jobs"),
        (3, "bob", "t", "jobs"),
        (4, "ann", "t", "other"),
        (5, "ann", "t", "jobs"),
    ] {
        let scope = Scope::new(Some(user), Some(thread));
        let key = SubmitKey([number; 16]);
        let claim =
            intended(&*store, TaskIntent { scope, server: server.into(), submit_key: key, ..intent(number) }).await;
        assert_eq!(store.record(claim, handle(number)).await.unwrap(), Recorded::Recorded);
    }
    let ended = claim(&*store, OURS, Duty::Poll, LONG).await.into_iter().find(|task| task.claim.task == id(5)).unwrap();
    let change = moved(&ended, completed());
    assert_eq!(store.apply(ended.claim, change, LONG).await.unwrap(), Settled::Settled);

    let listed = async |filter: TaskFilter| {
        let count = store.count_tasks(filter.clone()).await.unwrap();
        let mut pages = Vec::new();
        let mut before = None;
        loop {
            let page = store.list_tasks(filter.clone(), before, 2).await.unwrap();
            let Some(last) = page.last() else { break };
            before = Some(PageKey { created_us: last.created_us, task: last.task });
            pages.extend(page);
        }
        assert_eq!(count, u64::try_from(pages.len()).unwrap());
        let ordered = pages.is_sorted_by_key(|task| std::cmp::Reverse((task.created_us, task.task)));
        assert!(ordered && pages.iter().all(|task| task.snapshot.result.is_none()), "{pages:?}");
        let mut numbers: Vec<u8> = pages.iter().map(|task| task.task.0[0]).collect();
        numbers.sort_unstable();
        numbers
    };
    let ann = || TaskFilter { user: Some(UserId::from("ann")), ..TaskFilter::default() };
    let thread = || TaskFilter { thread: Some(ThreadId::from("t")), ..TaskFilter::default() };
    assert_eq!(listed(TaskFilter::default()).await, [1, 2, 3, 4, 5]);
    assert_eq!(listed(ann()).await, [1, 2, 4, 5]);
    assert_eq!(listed(thread()).await, [1, 3, 4, 5]);
    assert_eq!(listed(TaskFilter { thread: thread().thread, ..ann() }).await, [1, 4, 5]);
    assert_eq!(listed(TaskFilter { is_active: Some(true), ..ann() }).await, [1, 2, 4]);
    assert_eq!(listed(TaskFilter { is_active: Some(false), ..TaskFilter::default() }).await, [5]);
    assert_eq!(listed(TaskFilter { server: Some("other".into()), ..thread() }).await, [4]);
    let bob = Scope::new(Some("bob"), Some("t"));
    assert_eq!(store.read_task(id(1), Some(bob)).await.unwrap(), None, "another user's");
    let elsewhere = Scope::new(Some("ann"), Some("u"));
    assert_eq!(store.read_task(id(1), Some(elsewhere)).await.unwrap(), None, "another thread's");
    assert!(store.read_task(id(5), None).await.unwrap().unwrap().snapshot.result.is_some());
}

#[rstest]
#[tokio::test]
async fn old_tasks_are_forgotten_when_all_is_told(#[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    // Durability.md 1.4, retention; invariant N1.
    let store = Opened::new(kind).await;
    let task = complete(&*store, 1).await;
    followed(&*store, 2).await;
    assert_eq!(store.forget_tasks(LONG).await.unwrap(), 0, "it is not old");
    assert_eq!(store.forget_tasks(Duration::ZERO).await.unwrap(), 0, "it is not told");
    let told = crate::notifications::claim_delivery(&*store, LONG).await;
    crate::notifications::take(&*store, told).await;
    let forgotten = async || (store.forget_tasks(Duration::ZERO).await.unwrap() == 1).then_some(());
    eventually(WITHIN, "the task is old", forgotten).await;
    assert_eq!(store.read_task(task, None).await.unwrap(), None);
    assert_eq!(store.events(task, 0, 10).await.unwrap(), []);
    assert_eq!(store.forget_tasks(Duration::ZERO).await.unwrap(), 0, "what goes on is kept");
    assert!(store.read_task(id(2), None).await.unwrap().is_some());
    followed(&*store, 1).await;
}
