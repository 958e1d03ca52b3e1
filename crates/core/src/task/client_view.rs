//! What clients of the protocol see of a task: the one table from what is stored to the words of both eras (mcp.md §9,
//! §14.5).
//!
//! ```text
//!   stored                      modern client                legacy client
//!   intended, submitted,
//!   working                     working                      working
//!   input required              input_required with what is  the same
//!                               still unanswered; working
//!                               when nothing is
//!   completed                   completed, result            completed; failed if the result says `isError`
//!   failed, task of the
//!   protocol itself             failed, the server's error   failed, the server's error, or ours if it gave none
//!   failed, task of a toolset   completed, `isError` result  failed, the same result
//!   cancelled                   cancelled                    cancelled
//!   unknown                     failed, error                failed, error
//!   any, cancel requested       as above                     cancelled, for good
//! ```
//!
//! The last row is the legacy era's own rule: a cancel is answered by the cancelled task, and cancelled it stays whatever
//! its server does with it. What is stored goes on to say the truth. Nothing here is I/O, and nothing fails.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::rpc_error::RpcError;
use super::snapshot::Snapshot;
use super::status::Status;
use crate::era::Era;
use crate::failure::Code;
use crate::raw::{self, Members, text};

/// The status of a task in the protocol: the same five words in both eras.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It goes on.
    Working,
    /// It waits for an answer of the client.
    InputRequired,
    /// It ended with a result.
    Completed,
    /// It ended with an error.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl Word {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether it is final.
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Working | Self::InputRequired)
    }
}

/// What is on record of a task.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its state.
    pub snapshot: &'a Snapshot,
    /// Whether it is one of the protocol itself, whose result is a `CallToolResult`; else one of a toolset.
    pub is_native: bool,
    /// The number of its newest event.
    pub version: i64,
    /// Whether it was to be cancelled before it ended.
    pub is_cancel_requested: bool,
    /// The names under which answers are stored.
    pub answered: &'a [String],
}

/// What a client sees.
#[derive(Clone, Debug)]
pub struct ClientView {
    /// Its status.
    pub word: Word,
    /// What people may read beside it.
    pub message: Option<String>,
    /// What is asked and not answered yet.
    pub questions: Vec<Question>,
    /// How the call ended that the task stands for.
    pub outcome: Option<Outcome>,
}

/// What the call would have been answered with.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A `CallToolResult`.
    Result(Box<RawValue>),
    /// The JSON-RPC error of the server.
    Rpc(RpcError),
    /// An error of ours.
    Error {
        /// The word that says what kind.
        code: Code,
        /// Why.
        message: String,
    },
}

/// One question.
#[derive(Clone, Debug)]
pub struct Question {
    /// Its name in this task, never used twice.
    pub name: String,
    /// `{method, params}`.
    pub request: Box<RawValue>,
    /// Whether it stands for the question of a toolset, whose answer is the content of the form alone.
    is_form: bool,
}

impl Question {
    /// What is stored of a client's answer; `None` = nothing: a tool that asks has no word for a refusal, and goes on
    /// waiting.
    pub fn body<'a>(&self, answer: &'a RawValue) -> Option<Cow<'a, RawValue>> {
        if !self.is_form {
            return Some(Cow::Borrowed(answer));
        }
        let answer = Members::of(answer)?;
        let is_accepted = answer.get("action").and_then(text).is_some_and(|action| action == "accept");
        is_accepted.then(|| answer.get("content").map_or_else(|| Cow::Owned(empty()), Cow::Borrowed))
    }

    /// What is asked for: `elicitation/create`, ...
    pub fn method(&self) -> String {
        let request = Members::of(&self.request);
        request.and_then(|request| text(request.get("method")?).map(Cow::into_owned)).unwrap_or_default()
    }
}

/// What a client of `era` sees of a task.
pub fn view(era: Era, seen: &Seen<'_>) -> ClientView {
    let snapshot = seen.snapshot;
    let bare = |word| ClientView { word, message: None, questions: Vec::new(), outcome: None };
    if era == Era::Legacy && seen.is_cancel_requested {
        return bare(Word::Cancelled);
    }
    match snapshot.status {
        Status::Intended | Status::Submitted | Status::Working => bare(Word::Working),
        Status::InputRequired => waiting(seen),
        Status::Completed => ended(era, result(seen), None),
        Status::Failed if !seen.is_native => ended(era, failure(snapshot), snapshot.error.clone()),
        Status::Failed => failed(Code::UpstreamError, snapshot),
        Status::Cancelled => bare(Word::Cancelled),
        Status::Unknown => failed(Code::OutcomeUnknown, snapshot),
    }
}

fn failed(code: Code, snapshot: &Snapshot) -> ClientView {
    let message = snapshot.error.clone().unwrap_or_else(|| "the server does not say why".to_owned());
    let rpc_error = snapshot.rpc_error.as_deref().and_then(RpcError::parse);
    let outcome = rpc_error.map_or_else(|| Outcome::Error { code, message: message.clone() }, Outcome::Rpc);
    ClientView { word: Word::Failed, message: Some(message), questions: Vec::new(), outcome: Some(outcome) }
}

/// A result that says `isError` is a failure in the legacy era, and a completion in the modern one.
fn ended(era: Era, result: Box<RawValue>, message: Option<String>) -> ClientView {
    let word = if era == Era::Legacy && is_error(&result) { Word::Failed } else { Word::Completed };
    ClientView { word, message, questions: Vec::new(), outcome: Some(Outcome::Result(result)) }
}

fn is_error(result: &RawValue) -> bool {
    Members::of(result).is_some_and(|result| result.get("isError").is_some_and(|is_error| is_error.get() == "true"))
}

/// A part of a `CallToolResult` of ours.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    Text {
        text: Cow<'a, str>,
    },
    #[serde(rename_all = "camelCase")]
    ResourceLink {
        uri: &'a str,
        name: &'a str,
        mime_type: &'a str,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallToolResult<'a> {
    content: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Truncated>,
}

/// Says that a result was too large to be kept, and that this is its beginning.
#[derive(Serialize)]
struct Truncated {
    #[serde(rename = "io.caribou/truncated")]
    is_truncated: bool,
}

/// The result of a completed task: as its server wrote it, or what a toolset tells as one.
fn result(seen: &Seen<'_>) -> Box<RawValue> {
    let snapshot = seen.snapshot;
    let kept = snapshot.result.as_deref().and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
    if let Some(kept) = kept.filter(|_| seen.is_native) {
        return kept.to_owned();
    }
    let said = kept.map(|kept| text(kept).unwrap_or(Cow::Borrowed(kept.get())));
    let said = said.or(snapshot.preview.as_deref().map(Cow::Borrowed));
    let link = snapshot.artifact.as_ref().map(|artifact| Content::ResourceLink {
        uri: &artifact.uri,
        name: &artifact.uri,
        mime_type: &artifact.mime_type,
    });
    let content = said.map(|text| Content::Text { text }).into_iter().chain(link).collect();
    let structured_content = kept.filter(|kept| !kept.get().starts_with('"') && kept.get() != "null");
    let meta = snapshot.is_truncated.then_some(Truncated { is_truncated: true });
    json(&CallToolResult { content, structured_content, is_error: false, meta })
}

/// What a toolset tells of a failure, as a tool tells of one.
fn failure(snapshot: &Snapshot) -> Box<RawValue> {
    let text = Cow::Borrowed(snapshot.error.as_deref().unwrap_or("the task failed; its server does not say why"));
    let content = vec![Content::Text { text }];
    json(&CallToolResult { content, structured_content: None, is_error: true, meta: None })
}

/// A task that asks something: with what is not answered yet, or at work with the answers.
fn waiting(seen: &Seen<'_>) -> ClientView {
    let asked = seen.snapshot.input_required.as_deref();
    let asked = asked.and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
    let all = asked.map_or_else(Vec::new, |asked| questions(asked, seen));
    let is_any = !all.is_empty();
    let questions: Vec<_> = all.into_iter().filter(|question| !seen.answered.contains(&question.name)).collect();
    let word = if is_any && questions.is_empty() { Word::Working } else { Word::InputRequired };
    let message = asked.and_then(Members::of).and_then(|asked| message(&asked).map(Cow::into_owned));
    ClientView { word, message: message.filter(|_| word == Word::InputRequired), questions, outcome: None }
}

/// Named requests as they are; the question of a toolset as the form that it is. None where a server of the protocol does
/// not say what it waits for.
fn questions(asked: &RawValue, seen: &Seen<'_>) -> Vec<Question> {
    let members = Members::of(asked);
    let named = members.as_ref().and_then(|asked| Members::of(asked.get("inputRequests")?));
    if let Some(named) = named {
        let question = |(name, request): (Cow<'_, str>, &RawValue)| Question {
            name: name.into_owned(),
            request: request.to_owned(),
            is_form: false,
        };
        return named.0.into_iter().map(question).collect();
    }
    if seen.is_native {
        return Vec::new();
    }
    // Every new question is an event, so this name is new, too.
    vec![Question { name: format!("input-{}", seen.version), request: form(asked, members.as_ref()), is_form: true }]
}

/// What a person reads of a question.
fn message<'a>(asked: &Members<'a>) -> Option<Cow<'a, str>> {
    ["message", "prompt", "question", "text"].into_iter().find_map(|name| text(asked.get(name)?))
}

/// The request for a form that a toolset's question is; without a form of its own it takes one text.
fn form(asked: &RawValue, members: Option<&Members<'_>>) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Request<'a> {
        method: &'static str,
        params: Params<'a>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        mode: &'static str,
        message: Cow<'a, str>,
        requested_schema: &'a RawValue,
    }
    let any = RawValue::from_string(ANY_TEXT.to_owned()).unwrap_or_default();
    let own = members.and_then(|members| {
        let schema = ["schema", "requestedSchema"].into_iter().find_map(|name| members.get(name));
        schema.filter(|schema| schema.get().starts_with('{'))
    });
    let message = members.and_then(message).or_else(|| text(asked)).unwrap_or(Cow::Borrowed(asked.get()));
    let params = Params { mode: "form", message, requested_schema: own.unwrap_or(&any) };
    json(&Request { method: "elicitation/create", params })
}

/// The form of an answer of which nothing is said.
const ANY_TEXT: &str = r#"{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}"#;

/// Strings, booleans and raw JSON always become JSON.
fn json(what: &impl Serialize) -> Box<RawValue> {
    to_raw_value(what).unwrap_or_default()
}

fn empty() -> Box<RawValue> {
    RawValue::from_string(raw::object([])).unwrap_or_default()
}

#[cfg(test)]
mod tests;
