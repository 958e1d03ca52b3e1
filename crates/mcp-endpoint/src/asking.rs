//! Questions of servers to legacy clients (mcp.md 14.3): each becomes a request on the stream of the call that it belongs
//! to, and the client's answers go back with the same call.
//!
//! A client is asked only what it said it can answer, and only where its stream is read. Its answers come with POSTs of
//! their own; one that comes to another replica finds the way to the one that asked by the life in the question's id.
//! What a client refuses, or does not answer for long, is told to a server of the legacy era, which goes on; a call of the
//! modern era, which has no such answer, ends (invariant B1).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_core::raw::{Members, object, text};
use caribou_ports::mcp::relayed::{GONE, INPUT_RESPONSES, PARKED, REFUSED, REQUEST_STATE};
use serde_json::json;
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

/// What a client answers to a question.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The result.
    Result(Box<RawValue>),
    /// The error object of one that refuses.
    Refused(Box<RawValue>),
}

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
    /// The client of `session` answers the question of this id (JSON text). Whether it was asked here.
    pub(crate) fn deliver(&self, session: &str, id: &str, answer: Answer) -> bool {
        let asked = self.lock().remove(&(session.to_owned(), id.into()));
        asked.is_some_and(|asked| asked.send(answer).is_ok())
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

    /// What tells a server that waits that its caller is gone; `None` = it does not wait.
    pub(crate) fn farewell(&self) -> Option<Vec<(String, Box<RawValue>)>> {
        let state = self.state.filter(|_| self.waits())?;
        let gone = to_raw_value(&json!({ GONE: true })).ok()?;
        Some(vec![(INPUT_RESPONSES.to_owned(), gone), (REQUEST_STATE.to_owned(), state.to_owned())])
    }

    /// Whether a server of the legacy era asks: it waits for an answer, whatever it is.
    fn waits(&self) -> bool {
        self.state.and_then(text).is_some_and(|state| state.starts_with(PARKED))
    }

    /// Asks the client of `desk` all of them, and answers with what goes back to the server.
    ///
    /// # Errors
    /// There are too many; or the client cannot be reached, says nothing for long, or refuses, and the server has no way to
    /// hear that.
    pub(crate) async fn ask(self, desk: &Desk<'_>) -> Result<Vec<(String, Box<RawValue>)>, Fault> {
        if self.questions.0.len() > MAX_QUESTIONS {
            return Err(Fault::not_answered("the server asks more at once than is relayed"));
        }
        let waits = self.waits();
        let asking = self.questions.0.iter().map(|(key, question)| async move {
            let answer = match (ask_one(desk, question).await, waits) {
                (Ok(Answer::Result(result)), _) => result,
                (Ok(Answer::Refused(error)), true) => refused(&error)?,
                (Ok(Answer::Refused(_)), false) => {
                    return Err(Fault::not_answered("the client did not answer what the server asked"));
                }
                (Err(_), true) => unanswered(question)?,
                (Err(fault), false) => return Err(fault),
            };
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

/// Where a legacy client is asked.
pub(crate) struct Desk<'d> {
    pub(crate) answers: &'d Answers,
    /// The life of the replica that asks: answers find their way by it.
    pub(crate) boot: &'d str,
    pub(crate) session: &'d str,
    pub(crate) notices: &'d Notices,
}

/// Asks the client of `desk` all of these, by their names, at once; its answers by the same names.
///
/// # Errors
/// There are too many, or the client cannot be reached, says nothing for long, or refuses one.
pub(crate) async fn ask_all(
    desk: &Desk<'_>,
    questions: &[(&str, &RawValue)],
) -> Result<Vec<(String, Box<RawValue>)>, Fault> {
    if questions.len() > MAX_QUESTIONS {
        return Err(Fault::not_answered("the server asks more at once than is relayed"));
    }
    let asking = questions.iter().map(|(name, question)| async move {
        match ask_one(desk, question).await? {
            Answer::Result(result) => Ok(((*name).to_owned(), result)),
            Answer::Refused(_) => Err(Fault::not_answered("the client did not answer what the server asked")),
        }
    });
    futures::future::try_join_all(asking).await
}

async fn ask_one(desk: &Desk<'_>, question: &RawValue) -> Result<Answer, Fault> {
    let id = format!("\"ask-{}-{}\"", Uuid::new_v4().simple(), desk.boot);
    let mut waiting = desk.answers.expect(desk.session, &id);
    desk.notices.ask(&id, question).await?;
    let answer = tokio::select! {
        biased;
        answer = &mut waiting.answer => answer.ok(),
        () = desk.notices.unheard() => return Err(Fault::not_answered("the client went away before it answered")),
        () = tokio::time::sleep(PATIENCE) => None,
    };
    answer.ok_or_else(|| Fault::not_answered("the client did not answer what the server asked"))
}

/// The life that asked the question of this id (JSON text).
pub(crate) fn asked_by(id: &str) -> Option<&str> {
    let named = id.strip_prefix("\"ask-")?.strip_suffix('"')?;
    named.split_once('-').map(|(_, boot)| boot)
}

/// The answer that tells a server of the legacy era that its question was refused.
fn refused(error: &RawValue) -> Result<Box<RawValue>, Fault> {
    RawValue::from_string(object([(REFUSED, error)])).map_err(|_| Fault::bug())
}

/// The answer that tells it that nobody answers.
fn unanswered(question: &RawValue) -> Result<Box<RawValue>, Fault> {
    let method = Members::of(question).and_then(|question| question.get("method").map(RawValue::get));
    let answer = match method {
        Some("\"elicitation/create\"") => json!({ "action": "cancel" }),
        _ => json!({ REFUSED: { "code": -1, "message": "the client did not answer" } }),
    };
    to_raw_value(&answer).map_err(|_| Fault::bug())
}

/// The request of ours that `question` becomes.
pub(crate) fn request(id: &str, question: &RawValue) -> Option<String> {
    let members = Members::of(question)?;
    let method = to_raw_value(&text(members.get("method")?)?).ok()?;
    let params = members.get("params").map_or_else(String::new, |params| {
        let named = named(params);
        format!(",\"params\":{}", named.as_deref().unwrap_or(params).get())
    });
    Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method}{params}}}"))
}

/// The parameters of a visit with the name that the legacy era gives it, if they have none (mcp.md 14.3).
fn named(params: &RawValue) -> Option<Box<RawValue>> {
    let members = Members::of(params)?;
    let is_visit = members.get("mode").and_then(text).is_some_and(|mode| mode == "url");
    if !is_visit || members.get("elicitationId").is_some() {
        return None;
    }
    let name = to_raw_value(&Uuid::new_v4().to_string()).ok()?;
    let members = members.0.iter().map(|(name, value)| (name.as_ref(), *value));
    RawValue::from_string(object(members.chain([("elicitationId", &*name)]))).ok()
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

    fn desk<'d>(answers: &'d Answers, notices: &'d Notices) -> Desk<'d> {
        Desk { answers, boot: "b-1", session: "a", notices }
    }

    fn result(text: &str) -> Answer {
        Answer::Result(raw(text))
    }

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
            assert_eq!(asked_by(id), Some("b-1"));
            assert!(!answers.deliver("b", id, result("{}")), "of another session");
            assert!(answers.deliver("a", id, result(r#"{"action":"accept"}"#)));
        };
        let here = desk(&answers, &notices);
        let (brought, ()) = tokio::join!(questions.ask(&here), client);
        let brought: Vec<_> = brought.unwrap().into_iter().map(|(_, value)| value.get().to_owned()).collect();
        assert_eq!(brought, [r#"{"who":{"action":"accept"}}"#, "\"s\""]);
        assert!(answers.lock().is_empty());
    }

    #[tokio::test]
    async fn a_client_that_went_away_or_refuses_ends_a_call_of_the_modern_era() {
        let (answers, asking) = (Answers::default(), raw(ASKING));
        let (notices, heard) = Notices::new(None, Wanted::No);
        drop(heard);
        assert!(Questions::of(&asking).unwrap().ask(&desk(&answers, &notices)).await.is_err());
        let (notices, mut heard) = Notices::new(None, Wanted::No);
        let client = async {
            let request = raw(&heard.recv().await.unwrap());
            let id = Members::of(&request).unwrap().get("id").unwrap().get().to_owned();
            answers.deliver("a", &id, Answer::Refused(raw("{}")));
        };
        let here = desk(&answers, &notices);
        let (refused, ()) = tokio::join!(Questions::of(&asking).unwrap().ask(&here), client);
        assert!(refused.is_err() && answers.lock().is_empty());
        assert!(Questions::of(&raw(r#"{"content":[{"type":"text","text":"input_required"}]}"#)).is_none());
    }

    #[tokio::test]
    async fn a_server_of_the_legacy_era_hears_that_its_client_refused_or_went_away() {
        // mcp.md 14.3, legacy client and legacy server: the answer is relayed, whatever it is.
        let sampling = r#""ask-2":{"method":"sampling/createMessage"}"#;
        let elicit = r#""ask-1":{"method":"elicitation/create","params":{}}"#;
        let asking = format!(
            r#"{{"resultType":"input_required","requestState":"{PARKED}1","inputRequests":{{{elicit},{sampling}}}}}"#
        );
        let (answers, asking) = (Answers::default(), raw(&asking));
        let (notices, mut heard) = Notices::new(None, Wanted::No);
        let client = async {
            heard.recv().await.unwrap();
            let second = raw(&heard.recv().await.unwrap());
            let id = Members::of(&second).unwrap().get("id").unwrap().get().to_owned();
            answers.deliver("a", &id, Answer::Refused(raw(r#"{"code":-1}"#)));
            drop(heard);
        };
        let here = desk(&answers, &notices);
        let (brought, ()) = tokio::join!(Questions::of(&asking).unwrap().ask(&here), client);
        let expected = r#"{"ask-1":{"action":"cancel"},"ask-2":{"io.caribou/refused":{"code":-1}}}"#;
        assert_eq!(brought.unwrap()[0].1.get(), expected);
    }

    #[test]
    fn a_visit_has_a_name_in_the_legacy_era() {
        // mcp.md 14.3, URL elicitation.
        let ask = |params: &str| request("1", &raw(&format!(r#"{{"method":"elicitation/create","params":{params}}}"#)));
        assert!(ask(r#"{"mode":"url","url":"u"}"#).unwrap().contains(r#""elicitationId":""#));
        let named = r#"{"mode":"url","elicitationId":"e"}"#;
        assert!(ask(named).unwrap().contains(named) && ask("{}").unwrap().ends_with(r#""params":{}}"#));
    }
}
