//! Calls that wait, with a server and callers that do what each test says.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::super::asking::tests::{Told, ask, asking, raw};
use super::super::{Asking, Hearing};
use super::*;

/// One call whose server asked something.
struct Stand {
    parks: Arc<Parks>,
    asking: Arc<Asking>,
    /// What the server heard.
    told: Told,
    answer: Option<oneshot::Sender<Outcome>>,
    /// Whether the request was given up.
    is_dropped: Arc<AtomicBool>,
}

struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Stand {
    fn new() -> Self {
        Self::within(Parks::new(CancellationToken::new()))
    }

    fn within(parks: Arc<Parks>) -> Self {
        Self { parks, asking: asking(true), told: Told::default(), answer: None, is_dropped: Arc::default() }
    }

    /// The call is asked something: what its caller is answered.
    async fn begin(&mut self) -> Outcome {
        let (answer, answered) = oneshot::channel();
        let dropped = Dropped(self.is_dropped.clone());
        let flight = async move {
            let outcome = answered.await.unwrap_or_else(|_| Err(CallError::StreamEnded("gone".to_owned())));
            let _dropped = dropped;
            outcome
        };
        self.answer = Some(answer);
        ask(&self.asking, "7", "elicitation/create", r#"{"message":"?"}"#, &self.told);
        let hearing = Hearing::Fixed(None);
        let call = ParkedCall::go_on(Box::pin(flight), self.asking.clone(), hearing, self.parks.over.clone());
        self.parks.begin(&call).await
    }

    async fn state(&mut self) -> Box<RawValue> {
        state_of(&self.begin().await)
    }

    async fn bring(&self, state: &RawValue, answers: &str, principal: &str) -> Outcome {
        let brought = Brought { state: state.to_owned(), answers: Some(raw(answers)), principal: principal.to_owned() };
        self.parks.resume(brought, None).await
    }

    fn heard(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }

    fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Acquire)
    }
}

fn state_of(outcome: &Outcome) -> Box<RawValue> {
    let asked = outcome.as_ref().unwrap();
    let members = Members::of(asked).unwrap();
    assert_eq!(members.get("resultType").unwrap().get(), "\"input_required\"");
    members.get("requestState").unwrap().to_owned()
}

fn why(outcome: Outcome) -> String {
    match outcome {
        Err(CallError::NotParked(why)) => why,
        other => panic!("{other:?}"),
    }
}

const YES: &str = r#"{"ask-1":{"action":"accept"}}"#;

#[tokio::test(start_paused = true)]
async fn a_state_is_good_once_and_for_its_own_caller() {
    // mcp.md 14.7, 4; invariants P1, S2.
    let mut stand = Stand::new();
    let state = stand.state().await;
    assert!(stand.parks.is_any());
    assert!(why(stand.bring(&state, YES, "bob").await).contains("lost"), "of another principal");
    let answer = stand.answer.take().unwrap();
    let (first, second, ()) = tokio::join!(stand.bring(&state, YES, "ann"), stand.bring(&state, YES, "ann"), async {
        sleep(Duration::from_secs(1)).await;
        answer.send(Ok(raw(r#"{"n":1.0}"#))).unwrap();
    });
    assert_eq!((first.unwrap().get(), second.unwrap().get()), (r#"{"n":1.0}"#, r#"{"n":1.0}"#));
    assert_eq!(stand.heard(), [r#"{"jsonrpc":"2.0","id":7,"result":{"action":"accept"}}"#], "once");
    assert!(why(stand.bring(&state, "{}", "ann").await).contains("answered already"));
    assert!(!stand.parks.is_any());
    tokio::time::advance(REMEMBERED).await;
    assert!(why(stand.bring(&state, YES, "ann").await).contains("lost"), "forgotten");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_answered_is_asked_again_under_another_state() {
    // mcp.md 14.7, 7.
    let mut stand = Stand::new();
    let state = stand.state().await;
    let again = state_of(&stand.bring(&state, r#"{"other":1}"#, "ann").await);
    assert_ne!(again.get(), state.get());
    let malformed = stand.bring(&again, "[]", "ann").await;
    assert!(matches!(malformed, Err(CallError::Rpc { code: INVALID_PARAMS, .. })), "and the state is still good");
    stand.answer.take().unwrap().send(Ok(raw("{}"))).unwrap();
    assert_eq!(stand.bring(&again, YES, "ann").await.unwrap().get(), "{}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_comes_back_for_is_cancelled_in_time_and_not_before() {
    // mcp.md 14.7, 5; 14.8.
    let mut stand = Stand::new();
    let state = stand.state().await;
    sleep(PATIENCE - Duration::from_secs(1)).await;
    assert!(stand.parks.is_any() && !stand.is_dropped());
    sleep(Duration::from_secs(2)).await;
    assert!(stand.is_dropped() && !stand.parks.is_any());
    assert_eq!(stand.heard(), [r#"{"jsonrpc":"2.0","id":7,"result":{"action":"cancel"}}"#]);
    assert!(why(stand.bring(&state, YES, "ann").await).contains("lost"));
}

#[tokio::test(start_paused = true)]
async fn a_round_goes_on_for_a_while_without_its_caller() {
    let mut stand = Stand::new();
    let state = stand.state().await;
    assert!(timeout(Duration::from_secs(1), stand.bring(&state, YES, "ann")).await.is_err(), "its stream is cut");
    sleep(REJOIN / 2).await;
    assert!(timeout(Duration::from_secs(1), stand.bring(&state, YES, "ann")).await.is_err(), "joined");
    sleep(REJOIN / 2).await;
    assert!(!stand.is_dropped() && stand.parks.is_any());
    sleep(REJOIN * 2).await;
    assert!(stand.is_dropped() && !stand.parks.is_any());
    assert!(why(stand.bring(&state, YES, "ann").await).contains("lost"));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_is_gone_and_a_session_that_ends_cancel_what_waits() {
    let mut stand = Stand::new();
    let state = stand.state().await;
    why(stand.bring(&state, r#"{"io.caribou/gone":true}"#, "ann").await);
    sleep(Duration::from_millis(1)).await;
    assert!(stand.is_dropped() && !stand.parks.is_any());
    assert_eq!(stand.heard().len(), 1);
    let mut stand = Stand::new();
    stand.begin().await.unwrap();
    stand.parks.close();
    sleep(Duration::from_millis(1)).await;
    assert!(stand.is_dropped() && !stand.parks.is_any());
}

#[tokio::test(start_paused = true)]
async fn one_too_many_is_declined_and_goes_on() {
    // Invariant B1.
    let parks = Parks::new(CancellationToken::new());
    for _ in 0..MAX_PARKED {
        Stand::within(parks.clone()).begin().await.unwrap();
    }
    let mut stand = Stand::within(parks);
    let told = stand.told.clone();
    let asked = stand.begin();
    let declined = timeout(Duration::from_secs(1), asked).await;
    assert!(declined.is_err(), "it waits for its server");
    assert_eq!(*told.lock().unwrap(), [r#"{"jsonrpc":"2.0","id":7,"result":{"action":"decline"}}"#]);
}
