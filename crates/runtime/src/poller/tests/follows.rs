//! What a poll means for the record, and when the next one comes.

use caribou_core::failure::Code;
use caribou_core::task::poison::POISONED;
use caribou_core::task::{Status, TaskLimits};
use caribou_ports::store::{AnswerStored, NewAnswer, Notifications as _, Tasks as _};
use caribou_store::Memory;
use tokio::time::Instant;

use super::remote::{Remote, Said};
use super::replica::*;

#[tokio::test(start_paused = true)]
async fn a_task_is_polled_until_it_ends_and_unchanged_polls_record_nothing() {
    // Contract 6.5, apply result; invariants T2, T3.
    let (store, remote) = (Memory::default(), Remote::default());
    remote.says("remote-1", [Said::Is(Status::Working), Said::Is(Status::Working), Said::Is(Status::Completed)]);
    let _replica = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    let task = submitted(&store, 1).await;
    let done = ended(&store, 1, seconds(30)).await;
    assert_eq!((done.snapshot.status, done.version), (Status::Completed, 3), "submitted, working, completed");
    let events = store.events(task, 0, 10).await.unwrap();
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3]);
    let polled = remote.job("remote-1", |job| job.polled.clone());
    let waits: Vec<u64> = polled.windows(2).map(|two| two[1].duration_since(two[0]).as_secs()).collect();
    assert_eq!(waits, [5, 5], "the interval of the settings");
    assert_eq!(store.deliveries(task).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn errors_are_tried_again_with_doubling_waits_and_told_from_the_third_on() {
    // Contract 6.5, error backoff; 6.9, tracking degraded.
    let (store, remote) = (Memory::default(), Remote::default());
    let failures = [Said::Failure, Said::Error(Code::UpstreamError), Said::Failure, Said::Is(Status::Completed)];
    remote.says("remote-1", failures);
    let _replica = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    let task = submitted(&store, 1).await;
    until(seconds(60), "three errors", async || (stored(&store, 1).await.poll_errors == 3).then_some(())).await;
    let degraded = store.events(task, 1, 10).await.unwrap();
    assert_eq!(degraded.len(), 1);
    assert!(degraded[0].body.contains(r#""tracking_degraded":true"#), "{}", degraded[0].body);
    let done = ended(&store, 1, seconds(60)).await;
    assert_eq!((done.snapshot.status, done.poll_errors, done.last_poll_error), (Status::Completed, 0, None));
    let polled = remote.job("remote-1", |job| job.polled.clone());
    let waits: Vec<u64> = polled.windows(2).map(|two| two[1].duration_since(two[0]).as_secs()).collect();
    assert_eq!(waits, [5, 10, 20]);
}

#[tokio::test(start_paused = true)]
async fn only_a_breach_of_the_contract_ends_a_task_and_every_other_error_is_tried_again() {
    // Contract 6.5, poll outcomes: protocol error, driver missing, any other error.
    let too_large = Said::Error(Code::Invalid);
    let passing = Code::ALL.into_iter().filter(|code| *code != Code::Invalid).map(Said::Error);
    let passing: Vec<Said> = passing.chain([Said::Failure, Said::Unsupported]).collect();
    for (said, ends) in passing.into_iter().map(|said| (said, false)).chain([(Said::Nonsense, true), (too_large, true)])
    {
        let (store, remote) = (Memory::default(), Remote::default());
        remote.says("remote-1", [said, Said::Is(Status::Completed)]);
        let _replica = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
        submitted(&store, 1).await;
        let settled =
            async || Some(stored(&store, 1).await).filter(|task| task.poll_errors == 1 || task.ended_us.is_some());
        let first = until(seconds(5), "the first answer is settled", settled).await;
        let is_failed = first.snapshot.status == Status::Failed;
        assert_eq!((is_failed, first.last_poll_error.is_some()), (ends, !ends), "{said:?}");
        if !ends {
            assert_eq!(ended(&store, 1, seconds(10)).await.snapshot.status, Status::Completed, "{said:?}");
        }
        assert_eq!(remote.polls(), if ends { 1 } else { 2 }, "{said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_the_contract_ends_the_task() {
    // Contract 6.5, protocol error.
    let (store, remote) = (Memory::default(), Remote::default());
    remote.says("remote-1", [Said::Nonsense]);
    let _replica = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    submitted(&store, 1).await;
    let done = ended(&store, 1, seconds(5)).await;
    assert_eq!((done.snapshot.status, remote.polls()), (Status::Failed, 1));
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_is_an_error_of_that_poll_alone() {
    // Contract 6.5, any other error: the task goes on, and the poll was bounded by half its claim.
    let (store, remote) = (Memory::default(), Remote::default());
    remote.says("remote-1", [Said::After(seconds(600), Status::Failed), Said::Is(Status::Completed)]);
    let _replica = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    submitted(&store, 1).await;
    until(seconds(90), "one error", async || (stored(&store, 1).await.poll_errors == 1).then_some(())).await;
    let polled = remote.job("remote-1", |job| job.polled[0]);
    assert_eq!(polled.elapsed().as_secs(), TaskLimits::default().call_timeout().as_secs());
    assert_eq!(ended(&store, 1, seconds(10)).await.snapshot.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_kills_its_workers_is_given_up() {
    // Durability.md I10; architecture.md §10, poison.
    let (store, remote) = (Memory::default(), Remote::default());
    remote.says("remote-1", [Said::Kills]);
    remote.says("remote-2", [Said::Is(Status::Working), Said::Is(Status::Completed)]);
    let _replica = Replica::start(&store, &remote, "a", TaskLimits { lease_seconds: 5, ..TaskLimits::default() }).await;
    submitted(&store, 1).await;
    submitted(&store, 2).await;
    let done = ended(&store, 1, seconds(60)).await;
    assert_eq!((done.snapshot.status, done.snapshot.error.as_deref()), (Status::Failed, Some(POISONED)));
    assert_eq!(remote.job("remote-1", |job| job.polled.len()), 5);
    assert_eq!(stored(&store, 2).await.snapshot.status, Status::Completed, "others are followed meanwhile");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_left_alone_and_its_tasks_are_not_lost() {
    // Durability.md 1.10; invariant T4.
    let (store, remote) = (Memory::default(), Remote::default());
    let many = 40;
    for number in 1..=many {
        remote.says(&remote_id(number), [Said::Error(Code::Unavailable)]);
        submitted(&store, number).await;
    }
    let began = Instant::now();
    let _replica = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    until(seconds(60), "a minute", async || (began.elapsed() > seconds(55)).then_some(())).await;
    let asked = remote.polls();
    assert!((4..40).contains(&asked), "{asked} polls of a server that is away");
    for number in 1..=many {
        remote.says(&remote_id(number), [Said::Is(Status::Completed)]);
    }
    for number in 1..=many {
        ended(&store, number, seconds(400)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_brought_once_and_the_task_goes_on() {
    // architecture.md §10, `input_tool`.
    let (store, remote) = (Memory::default(), Remote::default());
    remote.says("remote-1", [Said::Is(Status::InputRequired)]);
    let _replica = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    let task = submitted(&store, 1).await;
    let asks = async || (stored(&store, 1).await.snapshot.status == Status::InputRequired).then_some(());
    until(seconds(5), "a question", asks).await;
    let answer = || NewAnswer { input_id: "one".to_owned(), body: r#"{"a":1}"#.to_owned() };
    for _ in 0..3 {
        assert!(matches!(store.answer(task, None, answer()).await.unwrap(), AnswerStored::Judged(_)));
    }
    assert_eq!(ended(&store, 1, seconds(10)).await.snapshot.status, Status::Completed);
    assert_eq!(remote.job("remote-1", |job| job.answers.clone()), ["one"]);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_submit_is_unknown_and_never_made_again() {
    // Invariant T1; contract 6.4.
    let (store, remote) = (Memory::default(), Remote::default());
    intended(&store, 1, seconds(3)).await;
    let _replica = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    let done = until(seconds(10), "the end", async || {
        store.read_task(id(1), None).await.unwrap().filter(|task| task.ended_us.is_some())
    });
    assert_eq!(done.await.snapshot.status, Status::Unknown);
    assert_eq!(remote.polls(), 0);
}
