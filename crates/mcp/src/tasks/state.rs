//! What both protocols of tasks share: the members of a `Task`, and what is shown of the questions of one.
//!
//! Hints that make no sense are passed over; a `Task` that names no task, another one, or a status that no task has
//! breaks the contract. Nothing that is shown names the remote's task (contract 2.3).

use caribou_core::raw::{self, Members};
use caribou_core::task::parse::Misread;
use caribou_core::task::{Report, Status};
use caribou_ports::mcp::TaskQuestion;
use caribou_ports::task_driver::RemoteTask;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// JSON-RPC: a name that the server does not know, or a task that has ended already (mcp.md §9).
pub(super) const INVALID_PARAMS: i64 = -32_602;

/// Ties a message to a task: it holds the remote's name of it.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// How the members of a `Task` are called that have other names in each protocol.
#[derive(Clone, Copy)]
pub(super) struct Names {
    /// How long the server keeps the task, in milliseconds from its creation.
    pub(super) ttl: &'static str,
    /// How long to wait before it is asked again, in milliseconds.
    pub(super) poll_interval: &'static str,
}

/// A `Task`.
pub(super) struct State<'r> {
    pub(super) members: Members<'r>,
    pub(super) status: Status,
    remote_id: String,
    names: Names,
}

/// What is remembered beside a task.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Remembered {
    /// How long the server said that it keeps the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<f64>,
}

impl<'r> State<'r> {
    /// Reads any task.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn of(task: &'r RawValue, names: Names) -> Result<Self, Misread> {
        let members = Members::of(task).ok_or_else(|| protocol("the task is not an object"))?;
        let text = |name: &str| members.get(name).and_then(raw::text);
        let remote_id = text("taskId").filter(|id| !id.trim().is_empty()).map(|id| id.into_owned());
        let remote_id = remote_id.ok_or_else(|| protocol("taskId is missing or empty"))?;
        let status = match text("status").as_deref() {
            Some("working") => Status::Working,
            Some("input_required") => Status::InputRequired,
            Some("completed") => Status::Completed,
            Some("failed") => Status::Failed,
            Some("cancelled") => Status::Cancelled,
            _ => return Err(protocol("the status is none that a task can have")),
        };
        Ok(Self { members, status, remote_id, names })
    }

    /// Reads the task that was asked about.
    ///
    /// # Errors
    /// It is none, or another one.
    pub(super) fn about(task: &'r RawValue, remote_id: &str, names: Names) -> Result<Self, Misread> {
        let state = Self::of(task, names)?;
        if state.remote_id == remote_id {
            Ok(state)
        } else {
            Err(protocol("taskId is another one than was asked about"))
        }
    }

    /// The handle of a task that was just created.
    pub(super) fn into_handle(self) -> RemoteTask {
        let remembered = Remembered { ttl_ms: self.milliseconds(self.names.ttl) };
        let driver_data = serde_json::to_string(&remembered).unwrap_or_else(|_| "{}".to_owned());
        RemoteTask { poll_after_seconds: self.poll_after(), remote_id: self.remote_id, driver_data }
    }

    /// What is known from the task alone.
    pub(super) fn report(&self) -> Report {
        Report { poll_after_seconds: self.poll_after(), ..Report::of(self.status) }
    }

    /// What the server says of how it stands, for people.
    pub(super) fn message(&self) -> Option<String> {
        self.members.get("statusMessage").and_then(raw::text).map(|text| text.into_owned())
    }

    fn poll_after(&self) -> Option<f64> {
        self.milliseconds(self.names.poll_interval).map(|milliseconds| milliseconds / 1_000.0)
    }

    /// A time that makes sense.
    fn milliseconds(&self, name: &str) -> Option<f64> {
        let value: f64 = serde_json::from_str(self.members.get(name)?.get()).ok()?;
        Some(value).filter(|value| value.is_finite() && *value > 0.0)
    }
}

/// The end of a task that the server does not know, or no longer.
pub(super) fn unknown(driver_data: &str) -> Report {
    let remembered: Remembered = serde_json::from_str(driver_data).unwrap_or_default();
    let kept = remembered.ttl_ms.map(|ttl| format!("; it said that it keeps it for {} s", ttl / 1_000.0));
    let error = format!("the MCP server no longer knows the task{}", kept.unwrap_or_default());
    Report { error: Some(error), is_unknown: true, ..Report::of(Status::Failed) }
}

/// What is shown of the questions of a task: each as a named request, which an answer names, and of the first
/// elicitation what a person needs. Without any question, what the server says of how the task stands.
pub(super) fn question(asked: &[TaskQuestion], status_message: Option<String>) -> Option<Box<RawValue>> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Shown<'a> {
        kind: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        requested_schema: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        input_requests: Option<Box<RawValue>>,
    }
    let bare: Vec<(&TaskQuestion, Box<RawValue>)> =
        asked.iter().map(|question| (question, without_task(&question.params))).collect();
    let elicitation = bare.iter().find(|(question, _)| question.method == "elicitation/create");
    let params = elicitation.and_then(|(_, params)| Members::of(params));
    let message = params.as_ref().and_then(|params| raw::text(params.get("message")?)).map(|text| text.into_owned());
    let shown = Shown {
        kind: if elicitation.is_some() { "elicitation" } else { "unknown" },
        message: message.or(status_message),
        requested_schema: params.as_ref().and_then(|params| params.get("requestedSchema")),
        input_requests: if bare.is_empty() { None } else { named(&bare) },
    };
    to_raw_value(&shown).ok()
}

/// `{name: {method, params}}`.
fn named(questions: &[(&TaskQuestion, Box<RawValue>)]) -> Option<Box<RawValue>> {
    #[derive(Serialize)]
    struct Request<'a> {
        method: &'a str,
        params: &'a RawValue,
    }
    let requests = questions.iter().map(|(question, params)| {
        to_raw_value(&Request { method: &question.method, params }).map(|request| (question.name.as_str(), request))
    });
    let requests: Vec<_> = requests.collect::<Result<_, _>>().ok()?;
    RawValue::from_string(raw::object(requests.iter().map(|(name, request)| (*name, &**request)))).ok()
}

/// A message without what ties it to the remote's task; everything else as it came (invariant W1).
pub(super) fn without_task(message: &RawValue) -> Box<RawValue> {
    let stripped = || {
        let members = Members::of(message)?;
        let meta = Members::of(members.get("_meta")?)?;
        meta.get(RELATED)?;
        let left =
            raw::object(meta.0.iter().filter(|(name, _)| name != RELATED).map(|(name, value)| (&**name, *value)));
        let left = RawValue::from_string(left).ok()?;
        let members = members.0.iter().filter_map(|(name, value)| match &**name {
            "_meta" if left.get() == "{}" => None,
            "_meta" => Some(("_meta", &*left)),
            name => Some((name, *value)),
        });
        RawValue::from_string(raw::object(members)).ok()
    };
    stripped().unwrap_or_else(|| message.to_owned())
}

pub(super) fn protocol(what: &str) -> Misread {
    Misread::Protocol(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    const NAMES: Names = Names { ttl: "ttl", poll_interval: "pollInterval" };

    #[test]
    fn hints_that_make_no_sense_are_passed_over() {
        for (interval, seconds) in [("1500", Some(1.5)), ("0", None), ("-1", None), ("\"5\"", None), ("null", None)] {
            let task = raw(&format!(r#"{{"taskId":"a","status":"working","pollInterval":{interval}}}"#));
            assert_eq!(State::of(&task, NAMES).unwrap().report().poll_after_seconds, seconds, "{interval}");
        }
    }

    #[test]
    fn what_is_no_task_or_another_one_breaks_the_contract() {
        for wrong in [
            "[]",
            "{}",
            r#"{"taskId":"","status":"working"}"#,
            r#"{"taskId":7,"status":"working"}"#,
            r#"{"taskId":"a","status":"queued"}"#,
            r#"{"taskId":"a"}"#,
            r#"{"taskId":"b","status":"working"}"#,
        ] {
            assert!(matches!(State::about(&raw(wrong), "a", NAMES), Err(Misread::Protocol(_))), "{wrong}");
        }
    }

    #[test]
    fn what_is_remembered_is_no_name_and_explains_an_end() {
        // Contract 6.6: the remote's name is no part of the driver's data.
        let task = raw(r#"{"taskId":"a","status":"working","ttl":60000,"pollInterval":1000}"#);
        let handle = State::of(&task, NAMES).unwrap().into_handle();
        assert_eq!((handle.remote_id.as_str(), handle.driver_data.as_str()), ("a", r#"{"ttl_ms":60000.0}"#));
        assert!(unknown(&handle.driver_data).error.unwrap().ends_with("keeps it for 60 s"));
        assert_eq!(unknown("{}").error.as_deref(), Some("the MCP server no longer knows the task"));
    }

    #[test]
    fn a_message_is_shown_without_the_name_of_its_task() {
        // Contract 2.3, never exposed.
        let related = r#""io.modelcontextprotocol/related-task":{"taskId":"a"}"#;
        for (message, shown) in [
            (format!(r#"{{"z":1.0,"_meta":{{{related}}},"a":"\ud800"}}"#), r#"{"z":1.0,"a":"\ud800"}"#),
            (format!(r#"{{"_meta":{{"k":1.0,{related}}}}}"#), r#"{"_meta":{"k":1.0}}"#),
            (r#"{ "_meta": {"k":1} }"#.to_owned(), r#"{ "_meta": {"k":1} }"#),
            ("[1]".to_owned(), "[1]"),
        ] {
            assert_eq!(without_task(&raw(&message)).get(), shown);
        }
    }

    #[test]
    fn a_question_is_shown_as_a_named_request_and_in_short() {
        let params = r#"{"message":"Which?","requestedSchema":{"type":"object"},
            "_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a"}}}"#;
        let asked = TaskQuestion { name: "q-1".into(), method: "elicitation/create".into(), params: raw(params) };
        let bare = r#""message":"Which?","requestedSchema":{"type":"object"}"#;
        let named = format!(r#"{{"q-1":{{"method":"elicitation/create","params":{{{bare}}}}}}}"#);
        let shown = format!(r#"{{"kind":"elicitation",{bare},"inputRequests":{named}}}"#);
        assert_eq!(question(&[asked], None).unwrap().get(), shown);
        let mute = question(&[], Some("waits".to_owned())).unwrap();
        assert_eq!(mute.get(), r#"{"kind":"unknown","message":"waits"}"#);
    }
}
