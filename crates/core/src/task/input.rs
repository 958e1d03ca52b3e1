//! Answers to the questions of a task (architecture.md §10, `input_tool`; mcp.md §9.2, `tasks/update`).
//!
//! Owns which answer may be stored. An answer has a name: that of the question where the remote names its questions,
//! else one that the caller makes up. Storing the same one again changes nothing; another one under the same name is
//! refused. Bringing it to the remote is somebody else's; the name goes along, so that the remote can tell a repeat.

use serde_json::Value;
use serde_json::value::RawValue;

use super::form;
use super::limits::{MAX_ANSWERS, MAX_INPUT_BYTES, MAX_INPUT_ID_CHARS};
use super::status::Status;
use crate::raw::{self, Members};

/// What is known of a task when somebody answers.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// Where it stands.
    pub status: Status,
    /// What the remote asks, as JSON.
    pub input_required: Option<&'a str>,
    /// Whether it is to be cancelled.
    pub is_cancel_requested: bool,
    /// The answer that is stored under this name.
    pub stored: Option<&'a str>,
    /// The answers that are stored for this task.
    pub count: usize,
}

/// What is done with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is stored and brought to the remote.
    Store,
    /// It was stored before.
    Same,
    /// Another answer has this name.
    Conflict,
    /// Nothing is asked, or nothing by this name.
    NothingAsked,
    /// It is no answer to the question; the text says why.
    Invalid(String),
    /// More answers than any task has questions.
    TooMany,
}

/// Decides about the answer `body` with the name `input_id`.
pub fn answer(asking: &Asking<'_>, input_id: &str, body: &RawValue) -> Answer {
    if let Some(stored) = asking.stored {
        return if stored == body.get() { Answer::Same } else { Answer::Conflict };
    }
    let question = match asking.input_required {
        Some(question) if asking.status == Status::InputRequired && !asking.is_cancel_requested => question,
        _ => return Answer::NothingAsked,
    };
    if input_id.trim().is_empty() || input_id.chars().count() > MAX_INPUT_ID_CHARS || input_id.contains('\0') {
        return Answer::Invalid(format!("`input_id` must have 1 to {MAX_INPUT_ID_CHARS} characters"));
    }
    if body.get().len() > MAX_INPUT_BYTES {
        return Answer::Invalid(format!("the answer has more than {MAX_INPUT_BYTES} bytes"));
    }
    if asking.count >= MAX_ANSWERS {
        return Answer::TooMany;
    }
    let Ok(question) = serde_json::from_str::<&RawValue>(question) else { return Answer::Store };
    match schema(question, input_id) {
        Asked::Nothing => Answer::NothingAsked,
        Asked::Anything => object(body).map_or_else(Answer::Invalid, |_| Answer::Store),
        Asked::Form(schema) => fits(schema, body).map_or_else(Answer::Invalid, |()| Answer::Store),
        Asked::Named(schema) => named(schema, body).map_or_else(Answer::Invalid, |()| Answer::Store),
    }
}

enum Asked<'a> {
    /// No question has this name.
    Nothing,
    /// A question without a form.
    Anything,
    /// The form that the answer must have.
    Form(&'a RawValue),
    /// A request of the protocol with a name; the form of its content, if it has one.
    Named(Option<&'a RawValue>),
}

/// What a question asks for. Named requests stand in `inputRequests` (mcp.md §9.2); a tool's own question may hold the
/// form of its answer as `schema` or `requestedSchema`.
fn schema<'a>(question: &'a RawValue, input_id: &str) -> Asked<'a> {
    let Some(question) = Members::of(question) else { return Asked::Anything };
    if let Some(requests) = question.get("inputRequests").and_then(Members::of) {
        let Some(request) = requests.get(input_id) else { return Asked::Nothing };
        let params = Members::of(request).and_then(|request| Members::of(request.get("params")?));
        return Asked::Named(params.and_then(|params| params.get("requestedSchema")));
    }
    ["schema", "requestedSchema"]
        .into_iter()
        .find_map(|name| question.get(name).filter(|schema| Members::of(schema).is_some()))
        .map_or(Asked::Anything, Asked::Form)
}

fn object(body: &RawValue) -> Result<Members<'_>, String> {
    Members::of(body).ok_or_else(|| "the answer is not an object".to_owned())
}

/// The answer to a named request: `{action, content?}` of an elicitation; another object is the result of another kind
/// of request and passes unchanged (invariant W1).
fn named(schema: Option<&RawValue>, body: &RawValue) -> Result<(), String> {
    let answer = object(body)?;
    let Some(schema) = schema else { return Ok(()) };
    match answer.get("action").and_then(raw::text).as_deref() {
        Some("accept") => fits(schema, answer.get("content").ok_or("`content` of an accepted answer is missing")?),
        Some("decline" | "cancel") => Ok(()),
        _ => Err("`action` must be accept, decline or cancel".to_owned()),
    }
}

/// Whether `body` is an object of the form `schema`. A form that cannot be read asks for nothing.
fn fits(schema: &RawValue, body: &RawValue) -> Result<(), String> {
    object(body)?;
    let read = |text: &RawValue| serde_json::from_str::<Value>(text.get());
    let answer = read(body).map_err(|_| "the answer cannot be read: it is nested too deep".to_owned())?;
    read(schema).map_or(Ok(()), |schema| form::fits(&schema, &answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Asking<'_> = Asking {
        status: Status::InputRequired,
        input_required: Some(r#"{"prompt":"Which?"}"#),
        is_cancel_requested: false,
        stored: None,
        count: 0,
    };

    fn give(asking: &Asking<'_>, input_id: &str, body: &str) -> Answer {
        answer(asking, input_id, &RawValue::from_string(body.to_owned()).unwrap())
    }

    #[test]
    fn an_answer_needs_a_question() {
        for asking in [
            Asking { status: Status::Working, ..ASKED },
            Asking { status: Status::Completed, ..ASKED },
            Asking { input_required: None, ..ASKED },
            Asking { is_cancel_requested: true, ..ASKED },
        ] {
            assert_eq!(give(&asking, "a", "{}"), Answer::NothingAsked);
        }
        assert_eq!(give(&ASKED, "a", r#"{"any":1}"#), Answer::Store);
    }

    #[test]
    fn the_same_answer_again_changes_nothing_and_another_one_is_refused() {
        let stored = Asking { stored: Some(r#"{"a":1}"#), ..ASKED };
        assert_eq!(give(&stored, "a", r#"{"a":1}"#), Answer::Same);
        assert_eq!(give(&stored, "a", r#"{"a":2}"#), Answer::Conflict);
        let ended = Asking { status: Status::Completed, ..stored };
        assert_eq!(give(&ended, "a", r#"{"a":1}"#), Answer::Same, "a repeat is answered whatever happened since");
    }

    #[test]
    fn an_answer_is_a_bounded_object_with_a_bounded_name() {
        for (input_id, body) in [("", "{}"), (" ", "{}"), ("a\0", "{}"), ("a", "7"), ("a", "\"x\""), ("a", "null")] {
            assert!(matches!(give(&ASKED, input_id, body), Answer::Invalid(_)), "{input_id} {body}");
        }
        assert!(matches!(give(&ASKED, &"i".repeat(256), "{}"), Answer::Invalid(_)));
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(65_536));
        assert!(matches!(give(&ASKED, "a", &large), Answer::Invalid(_)));
        assert_eq!(give(&Asking { count: 256, ..ASKED }, "a", "{}"), Answer::TooMany);
    }

    #[test]
    fn an_answer_has_the_form_that_was_asked_for() {
        let question = r#"{"schema":{"type":"object","required":["city"],
            "properties":{"city":{"type":"string"},"days":{"type":"integer"},"sea":{"type":"boolean"}}}}"#;
        let asking = Asking { input_required: Some(question), ..ASKED };
        for right in [r#"{"city":"Oslo"}"#, r#"{"city":"","days":3.0,"sea":true,"more":[]}"#] {
            assert_eq!(give(&asking, "a", right), Answer::Store, "{right}");
        }
        for (wrong, what) in [
            ("{}", "`city` is missing in the answer"),
            (r#"{"city":7}"#, "`city` in the answer is no string"),
            (r#"{"city":"a","days":1.5}"#, "`days` in the answer is no integer"),
            (r#"{"city":"a","sea":"true"}"#, "`sea` in the answer is no boolean"),
        ] {
            assert_eq!(give(&asking, "a", wrong), Answer::Invalid(what.to_owned()));
        }
    }

    #[test]
    fn a_named_question_is_answered_by_its_name() {
        // mcp.md §9.2, input keys.
        let question = r#"{"inputRequests":{"k1":{"method":"elicitation/create","params":{"message":"?",
            "requestedSchema":{"type":"object","required":["n"],"properties":{"n":{"type":"number"}}}}},
            "k2":{"method":"sampling/createMessage","params":{}}}}"#;
        let asking = Asking { input_required: Some(question), ..ASKED };
        assert_eq!(give(&asking, "k1", r#"{"action":"accept","content":{"n":1}}"#), Answer::Store);
        assert_eq!(give(&asking, "k1", r#"{"action":"decline"}"#), Answer::Store);
        assert!(matches!(give(&asking, "k1", r#"{"action":"accept","content":{}}"#), Answer::Invalid(_)));
        assert!(matches!(give(&asking, "k1", r#"{"action":"accept"}"#), Answer::Invalid(_)));
        assert!(matches!(give(&asking, "k1", r#"{"n":1}"#), Answer::Invalid(_)));
        assert_eq!(give(&asking, "k2", r#"{"role":"assistant"}"#), Answer::Store);
        assert_eq!(give(&asking, "k3", "{}"), Answer::NothingAsked);
    }
}
