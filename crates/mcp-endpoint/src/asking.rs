//! Questions of modern servers to legacy clients (mcp.md 14.3): each becomes a request on the stream of the call that
//! it belongs to, and the client's answers go back with the same call.
//!
//! A client is asked only what it said it can answer, and only where its stream is read. Its answers come with POSTs of
//! their own, to the replica that asked. A call whose client went away, or says nothing for long, ends (invariant B1).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_core::raw::{Members, object, text};
use caribou_ports::mcp::relayed::{INPUT_RESPONSES, REQUEST_STATE};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::fault::Fault;
use crate::notices::Notices;

/// How long a person may take to answer: as long as servers of the legacy era commonly wait.
const PATIENCE: Duration = Duration::from_secs(600);

/// Times that one call may ask; more is a server that never has enough.
pub(crate) const MAX_ROUNDS: usize = 16;

/// Questions of one round.
const MAX_QUESTIONS: usize = 16;

/// What a client answers: the result, or nothing but that there is none.
type Answer = Option<Box<RawValue>>;

type Key = (String, Box<str>);

/// The questions that wait for an answer.
#[derive(Clone, Default)]
pub(crate) struct Answers(Arc<Mutex<HashMap<Key, oneshot::Sender<Answer>>>>);

/// One of them, until it is dropped.
struct Waiting {
    of: Answers,
    key: Key,
    answer: oneshot::Receiver<Answer>,
}

impl Answers {
    /// The client of `session` answers the question of this id (JSON text). What nobody asked is passed over.
    pub(crate) fn deliver(&self, session: &str, id: &str, answer: Option<&RawValue>) {
        let asked = self.lock().remove(&(session.to_owned(), id.into()));
        if let Some(asked) = asked {
            let _ = asked.send(answer.map(ToOwned::to_owned));
        }
    }

    fn expect(&self, session: &str, id: &str) -> Waiting {
        let (asked, answer) = oneshot::channel();
        let key = (session.to_owned(), id.into());
        self.lock().insert(key.clone(), asked);
        Waiting { of: self.clone(), key, answer }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, oneshot::Sender<Answer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.of.lock().remove(&self.key);
    }
}

/// What a server asks in place of a result.
pub(crate) struct Questions<'r> {
    questions: Members<'r>,
    state: Option<&'r RawValue>,
}

impl<'r> Questions<'r> {
    /// The questions in `result`; `None` = it is a result.
    pub(crate) fn of(result: &'r RawValue) -> Option<Self> {
        // Looked for first: results are large, and few ask.
        if !result.get().contains("input_required") {
            return None;
        }
        let members = Members::of(result)?;
        let is_asking = members.get("resultType").and_then(text).is_some_and(|kind| kind == "input_required");
        let questions = members.get("inputRequests").map_or(Some(Members(Vec::new())), Members::of)?;
        is_asking.then(|| Self { questions, state: members.get("requestState") })
    }

    /// Asks the client of `session` all of them, and answers with what goes back to the server.
    ///
    /// # Errors
    /// There are too many, or the client cannot be reached, says nothing for long, or refuses.
    pub(crate) async fn ask(
        self,
        answers: &Answers,
        session: &str,
        notices: &Notices,
    ) -> Result<Vec<(String, Box<RawValue>)>, Fault> {
        if self.questions.0.len() > MAX_QUESTIONS {
            return Err(Fault::not_answered("the server asks more at once than is relayed"));
        }
        let asking = self.questions.0.iter().map(|(key, question)| async move {
            let id = format!("\"ask-{}\"", Uuid::new_v4().simple());
            let mut waiting = answers.expect(session, &id);
            notices.ask(&id, question).await?;
            let answer = tokio::select! {
                answer = &mut waiting.answer => answer.ok().flatten(),
                () = notices.unheard() => return Err(Fault::not_answered("the client went away before it answered")),
                () = tokio::time::sleep(PATIENCE) => None,
            };
            let answer =
                answer.ok_or_else(|| Fault::not_answered("the client did not answer what the server asked"))?;
            Ok((key.as_ref(), answer))
        });
        let answered = futures::future::try_join_all(asking).await?;
        let answered = object(answered.iter().map(|(key, answer)| (*key, &**answer)));
        let answered = RawValue::from_string(answered).map_err(|_| Fault::bug())?;
        let mut brought = vec![(INPUT_RESPONSES.to_owned(), answered)];
        brought.extend(self.state.map(|state| (REQUEST_STATE.to_owned(), state.to_owned())));
        Ok(brought)
    }
}

/// The request of ours that `question` becomes.
pub(crate) fn request(id: &str, question: &RawValue) -> Option<String> {
    let members = Members::of(question)?;
    let method = to_raw_value(&text(members.get("method")?)?).ok()?;
    let params = members.get("params").map_or_else(String::new, |params| format!(",\"params\":{}", params.get()));
    Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method}{params}}}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notices::Wanted;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    const ASKING: &str = r#"{"resultType":"input_required","requestState":"s",
        "inputRequests":{"who":{"method":"elicitation/create","params":{"n":1.0}}}}"#;

    #[tokio::test]
    async fn a_question_is_a_request_and_its_answer_goes_back_with_the_state() {
        let (answers, asking) = (Answers::default(), raw(ASKING));
        let (notices, mut heard) = Notices::new(None, Wanted::No);
        let questions = Questions::of(&asking).unwrap();
        let client = async {
            let request = raw(&heard.recv().await.unwrap());
            let members = Members::of(&request).unwrap();
            assert_eq!(members.get("params").unwrap().get(), r#"{"n":1.0}"#);
            let id = members.get("id").unwrap().get();
            answers.deliver("b", id, Some(&raw("{}")));
            answers.deliver("a", id, Some(&raw(r#"{"action":"accept"}"#)));
        };
        let (brought, ()) = tokio::join!(questions.ask(&answers, "a", &notices), client);
        let brought: Vec<_> = brought.unwrap().into_iter().map(|(_, value)| value.get().to_owned()).collect();
        assert_eq!(brought, [r#"{"who":{"action":"accept"}}"#, "\"s\""]);
        assert!(answers.lock().is_empty());
    }

    #[tokio::test]
    async fn a_client_that_went_away_or_refuses_ends_the_call() {
        let (answers, asking) = (Answers::default(), raw(ASKING));
        let (notices, heard) = Notices::new(None, Wanted::No);
        drop(heard);
        assert!(Questions::of(&asking).unwrap().ask(&answers, "a", &notices).await.is_err());
        let (notices, mut heard) = Notices::new(None, Wanted::No);
        let client = async {
            let request = raw(&heard.recv().await.unwrap());
            answers.deliver("a", Members::of(&request).unwrap().get("id").unwrap().get(), None);
        };
        let (refused, ()) = tokio::join!(Questions::of(&asking).unwrap().ask(&answers, "a", &notices), client);
        assert!(refused.is_err() && answers.lock().is_empty());
        assert!(Questions::of(&raw(r#"{"content":[{"type":"text","text":"input_required"}]}"#)).is_none());
    }
}
