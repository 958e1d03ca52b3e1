//! A task in the words of either era (mcp.md §9.1, §9.2).
//!
//! Tasks are kept at least as long as the settings say after their end, and never forgotten before: no time to live is
//! promised that begins with their making.

use std::time::Duration;

use caribou_core::era::Era;
use caribou_core::instant::rfc3339_micros;
use caribou_core::raw::{Members, object};
use caribou_core::task::client_view::{ClientView, Outcome};
use caribou_runtime::{ClientTask, VerbError};
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::fault::Fault;

/// Ties a legacy message to its task.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// What a client is told while a cancellation is under way.
const CANCELLING: &str = "cancellation was requested";

/// The `Task` object of the legacy era, with how often to ask for it.
pub(crate) fn legacy(task: &ClientTask, every: Duration) -> String {
    let view = task.view(Era::Legacy);
    written(&base(task, &view, ("ttl", "pollInterval"), every))
}

/// The answer of the modern era to a call that became a task.
pub(crate) fn created(task: &ClientTask, every: Duration) -> String {
    let view = task.view(Era::Modern);
    let mut members = vec![("resultType", raw(&"task"))];
    members.extend(base(task, &view, MODERN, every));
    written(&members)
}

/// The whole state of a task in the modern era, with what it asks or how it ended.
pub(crate) fn detailed(task: &ClientTask, every: Duration) -> String {
    let view = task.view(Era::Modern);
    let mut members = base(task, &view, MODERN, every);
    match &view.outcome {
        Some(Outcome::Result(result)) => members.push(("result", result.clone())),
        Some(Outcome::Rpc(error)) => members.push(("error", fault(error.clone().into()))),
        Some(Outcome::Error { code, message }) => {
            members.push(("error", fault(VerbError::new(*code, message.as_str()).into())));
        }
        None if view.word == caribou_core::task::client_view::Word::InputRequired => {
            let asked = object(view.questions.iter().map(|question| (question.name.as_str(), &*question.request)));
            members.push(("inputRequests", RawValue::from_string(asked).unwrap_or_default()));
        }
        None => {}
    }
    written(&members)
}

const MODERN: (&str, &str) = ("ttlMs", "pollIntervalMs");

type Written = Vec<(&'static str, Box<RawValue>)>;

fn base(
    task: &ClientTask,
    view: &ClientView,
    (ttl, interval): (&'static str, &'static str),
    every: Duration,
) -> Written {
    let stored = &task.stored;
    let mut members = vec![("taskId", raw(&stored.task)), ("status", raw(&view.word.as_str()))];
    let is_ending = stored.is_cancel_requested && !view.word.is_terminal();
    let message = view.message.as_deref().or(is_ending.then_some(CANCELLING));
    members.extend(message.map(|message| ("statusMessage", raw(&message))));
    members.push(("createdAt", raw(&rfc3339_micros(stored.created_us))));
    members.push(("lastUpdatedAt", raw(&rfc3339_micros(stored.updated_us))));
    members.push((ttl, raw(&())));
    members.push((interval, raw(&u64::try_from(every.as_millis()).unwrap_or(u64::MAX).max(1))));
    members
}

fn written(members: &Written) -> String {
    object(members.iter().map(|(name, value)| (*name, &**value)))
}

fn fault(fault: Fault) -> Box<RawValue> {
    RawValue::from_string(fault.error()).unwrap_or_default()
}

/// Strings, numbers and nothing always become JSON.
fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_default()
}

/// `message`, a result or the parameters of a request, as belonging to this task; everything else as it came.
pub(crate) fn related(message: &RawValue, task: &str) -> String {
    let members = Members::of(message).map_or_else(Vec::new, |members| members.0);
    let about = raw(&json!({ "taskId": task }));
    let meta = members.iter().rev().find(|(name, _)| name == "_meta").and_then(|(_, meta)| Members::of(meta));
    let others = meta.as_ref().map_or(&[][..], |meta| &meta.0).iter().filter(|(name, _)| name != RELATED);
    let others = others.map(|(name, value)| (&**name, *value));
    let meta = RawValue::from_string(object(others.chain([(RELATED, &*about)]))).unwrap_or_default();
    let kept = members.iter().filter(|(name, _)| name != "_meta").map(|(name, value)| (&**name, *value));
    object(kept.chain([("_meta", &*meta)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_a_task_says_so_and_is_otherwise_as_it_came() {
        // mcp.md §9.1, tasks/result; invariant W1.
        let related = |text: &str| related(&RawValue::from_string(text.to_owned()).unwrap(), "t");
        let about = r#""io.modelcontextprotocol/related-task":{"taskId":"t"}"#;
        assert_eq!(related(r#"{"z":1.0,"a":"\ud800"}"#), format!(r#"{{"z":1.0,"a":"\ud800","_meta":{{{about}}}}}"#));
        let before = r#"{"_meta":{"k":1.0,"io.modelcontextprotocol/related-task":{"taskId":"theirs"}},"n":[]}"#;
        assert_eq!(related(before), format!(r#"{{"n":[],"_meta":{{"k":1.0,{about}}}}}"#));
    }
}
