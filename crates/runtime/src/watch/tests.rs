//! What one hub hands to its watchers, and what comes of it.

use caribou_core::bounds::MAX_TASK_WATCHERS;
use caribou_core::ids::Scope;
use caribou_core::notification::{Audience, Key};
use caribou_core::task::TaskId;
use caribou_ports::event_sink::{EventSink as _, Launched, Room, Run, Told};
use futures::FutureExt as _;

use super::{TaskWatch, WatchAnswer, Watchers};

fn told(number: u8, user: &str) -> Told {
    Told {
        key: Key { task: TaskId([number; 16]), seq: 1, attempt: 0 },
        scope: Scope::new(Some(user), Some("t")),
        server: "jobs".into(),
        run_id: None,
        body: "{}".to_owned(),
        at_us: 0,
    }
}

fn key(number: u8) -> String {
    told(number, "ann").key.to_string()
}

fn of(user: &str) -> Audience {
    Audience::Users(vec![user.into()])
}

fn ended(run: Run) -> WatchAnswer {
    WatchAnswer::Run { run_id: "r".to_owned(), run }
}

const TAKEN: WatchAnswer = WatchAnswer::Launch(Launched::Delivered);

/// The key of what a watcher can fetch now.
fn fetched(watch: &mut TaskWatch) -> Option<String> {
    watch.next().now_or_never().flatten().map(|event| event.told.key.to_string())
}

#[tokio::test]
async fn an_event_waits_for_its_acknowledgement() {
    let watchers = Watchers::default();
    let mut watch = watchers.seat(Audience::Everybody, 4).unwrap();
    let event = told(1, "ann");
    let mut launch = watchers.launch(&event);
    assert!((&mut launch).now_or_never().is_none());
    assert_eq!(fetched(&mut watch), Some(key(1)));
    watch.answers().answer("another", TAKEN);
    assert!((&mut launch).now_or_never().is_none(), "another key");
    watch.answers().answer(&key(1), TAKEN);
    assert_eq!(launch.await, Launched::Delivered);
}

#[tokio::test]
async fn without_a_watcher_there_is_no_room_and_nothing_is_sent() {
    let watchers = Watchers::default();
    assert_eq!(watchers.room(), Room::For(0, Audience::Users(Vec::new())));
    assert_eq!(watchers.launch(&told(1, "ann")).await, Launched::NobodyThere);
    assert_eq!(watchers.look_up(&told(1, "ann"), "r").await, Run::NobodyThere);
    let _bobs = watchers.seat(of("bob"), 4).unwrap();
    assert_eq!(watchers.room(), Room::For(4, of("bob")));
    assert_eq!(watchers.launch(&told(1, "ann")).await, Launched::NobodyThere, "invariant P1");
}

#[tokio::test]
async fn a_stream_that_ends_leaves_what_was_sent_unclear_and_gives_the_rest_back() {
    // Invariant N1.
    let watchers = Watchers::default();
    let mut watch = watchers.seat(Audience::Everybody, 4).unwrap();
    let (sent, unsent, asked) = (told(1, "ann"), told(2, "ann"), told(3, "ann"));
    let (mut first, mut second) = (watchers.launch(&sent), watchers.launch(&unsent));
    let mut third = watchers.look_up(&asked, "r");
    assert!((&mut first).now_or_never().is_none() && (&mut third).now_or_never().is_none());
    assert_eq!([fetched(&mut watch), fetched(&mut watch)], [Some(key(1)), Some(key(3))]);
    assert!((&mut second).now_or_never().is_none());
    drop(watch);
    assert!(matches!(first.await, Launched::Unclear(_)), "it may have it");
    assert_eq!(second.await, Launched::NobodyThere, "it has not");
    assert_eq!(third.await, Run::NobodyThere, "asking has no effect");
}

#[tokio::test]
async fn a_watcher_has_at_most_its_window_and_keeps_nobody_else_waiting() {
    // Invariant B1.
    let watchers = Watchers::default();
    let mut slow = watchers.seat(of("ann"), 1).unwrap();
    let event = told(1, "ann");
    let mut waiting = watchers.launch(&event);
    assert!((&mut waiting).now_or_never().is_none());
    assert_eq!(fetched(&mut slow), Some(key(1)));
    assert_eq!(watchers.launch(&told(2, "ann")).await, Launched::NobodyThere, "its window is full");
    drop(waiting);
    assert_eq!(watchers.room(), Room::For(0, Audience::Users(Vec::new())), "it has the event still");
    let mut other = watchers.seat(Audience::Everybody, 2).unwrap();
    assert_eq!(watchers.room(), Room::For(2, Audience::Everybody));
    let mut again = watchers.launch(&event);
    assert!((&mut again).now_or_never().is_none());
    assert_eq!((fetched(&mut slow), fetched(&mut other)), (None, Some(key(1))), "under the same key");
    other.answers().answer(&key(1), TAKEN);
    assert_eq!(again.await, Launched::Delivered);
}

#[tokio::test]
async fn what_was_not_fetched_in_time_is_taken_back() {
    let watchers = Watchers::default();
    let mut watch = watchers.seat(Audience::Everybody, 1).unwrap();
    let event = told(1, "ann");
    let mut launch = watchers.launch(&event);
    assert!((&mut launch).now_or_never().is_none());
    drop(launch);
    assert_eq!((fetched(&mut watch), watchers.room()), (None, Room::For(1, Audience::Everybody)));
}

#[tokio::test]
async fn an_acknowledgement_that_comes_late_answers_the_next_attempt() {
    let watchers = Watchers::default();
    let mut watch = watchers.seat(Audience::Everybody, 1).unwrap();
    let event = told(1, "ann");
    let mut launch = watchers.launch(&event);
    assert!((&mut launch).now_or_never().is_none());
    assert_eq!(fetched(&mut watch), Some(key(1)));
    drop(launch);
    watch.answers().answer(&key(1), TAKEN);
    assert_eq!(watchers.room(), Room::For(1, Audience::Everybody), "there is room again");
    assert_eq!(watchers.launch(&event).await, Launched::Delivered);
    assert_eq!(fetched(&mut watch), None, "it was not sent again");
}

#[tokio::test]
async fn how_a_run_ended_may_be_said_before_it_is_asked() {
    // Contract 6.9, dispatched.
    let watchers = Watchers::default();
    let mut watch = watchers.seat(Audience::Everybody, 1).unwrap();
    let event = told(1, "ann");
    let mut launch = watchers.launch(&event);
    assert!((&mut launch).now_or_never().is_none());
    assert_eq!(fetched(&mut watch), Some(key(1)));
    let run = Launched::Run { run_id: "r".to_owned() };
    watch.answers().answer(&key(1), WatchAnswer::Launch(run.clone()));
    assert_eq!(launch.await, run);
    watch.answers().answer(&key(1), ended(Run::Succeeded));
    assert_eq!(watchers.look_up(&event, "r").await, Run::Succeeded);

    let mut asked = watchers.look_up(&event, "r");
    assert!((&mut asked).now_or_never().is_none(), "one answer for one question");
    let question = watch.next().await.unwrap();
    assert_eq!(question.launched_run.as_deref(), Some("r"));
    watch.answers().answer(&key(1), ended(Run::Running));
    assert_eq!(asked.await, Run::Running);
}

#[tokio::test]
async fn a_word_that_is_said_twice_counts_once() {
    let watchers = Watchers::default();
    let mut watch = watchers.seat(Audience::Everybody, 1).unwrap();
    let event = told(1, "ann");
    let mut launch = watchers.launch(&event);
    assert!((&mut launch).now_or_never().is_none());
    let refused = WatchAnswer::Launch(Launched::Refused("no".to_owned()));
    watch.answers().answer(&key(1), refused.clone());
    watch.answers().answer(&key(1), refused);
    assert_eq!(launch.await, Launched::Refused("no".to_owned()));
    assert!(watchers.launch(&event).now_or_never().is_none(), "it is sent again");
    assert_eq!(fetched(&mut watch), None, "and taken back");
}

#[tokio::test]
async fn a_watcher_that_leaves_may_still_acknowledge_what_it_has() {
    let watchers = Watchers::default();
    let mut watch = watchers.seat(Audience::Everybody, 2).unwrap();
    let (sent, unsent) = (told(1, "ann"), told(2, "ann"));
    let (mut first, mut second) = (watchers.launch(&sent), watchers.launch(&unsent));
    assert!((&mut first).now_or_never().is_none());
    assert_eq!(fetched(&mut watch), Some(key(1)));
    assert!((&mut second).now_or_never().is_none());
    watch.leave();
    assert_eq!(second.await, Launched::NobodyThere);
    assert_eq!(watchers.launch(&unsent).await, Launched::NobodyThere, "nothing new");
    assert!(watch.next().now_or_never().is_none(), "it has one event");
    watch.answers().answer(&key(1), TAKEN);
    assert_eq!((first.await, watch.next().await), (Launched::Delivered, None));
}

#[tokio::test]
async fn seats_are_bounded_and_given_back() {
    // Invariant B1.
    let watchers = Watchers::default();
    let mut seats: Vec<TaskWatch> = (0..MAX_TASK_WATCHERS).filter_map(|_| watchers.seat(of("ann"), 1)).collect();
    assert_eq!(seats.len(), MAX_TASK_WATCHERS);
    assert!(watchers.seat(of("ann"), 1).is_none());
    seats.pop();
    assert!(watchers.seat(of("ann"), 1).is_some());
}
