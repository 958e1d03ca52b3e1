//! What is told of a task, and when there is something to tell (contract 6.9, event; invariant T3).
//!
//! Every change of the status is an event and is stored with the change. Those that ask for attention, or tell that a
//! task is hard to follow, are also delivered: again only when what they say differs.

use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::id::TaskId;
use super::json::sorted;
use super::snapshot::{Artifact, Snapshot};
use super::status::Status;

/// The sha256 of what an event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

/// What is recorded of a task, with what an event says besides.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Its local name.
    pub task_id: TaskId,
    /// The name of its toolset.
    pub task_name: &'a str,
    /// Its state, as it is about to be stored.
    pub snapshot: &'a Snapshot,
    /// The error of the last poll, when the task is hard to follow.
    pub degraded_by: Option<&'a str>,
}

/// One event, ready to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What the task is now.
    pub status: Status,
    /// What is told, as JSON.
    pub body: String,
    /// `Some` = it is delivered, and this is the sha256 of what it says.
    pub attention: Option<Fingerprint>,
}

/// The event of a change to `facts`, when the task was `status` before and its last delivered event said `told`.
pub fn event(status: Status, told: Option<Fingerprint>, facts: &Facts<'_>) -> Option<Event> {
    let now = facts.snapshot.status;
    let body = body(facts);
    let asks = now.is_attention() || facts.degraded_by.is_some();
    let attention = asks.then(|| fingerprint(&body)).filter(|now| told != Some(*now));
    (attention.is_some() || status != now).then_some(Event { status: now, body, attention })
}

/// What an event says: all that a caller may see of a task.
#[derive(Serialize)]
struct Body<'a> {
    task_id: TaskId,
    task_name: &'a str,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<&'static str>,
    result: Option<&'a RawValue>,
    result_preview: Option<&'a str>,
    result_truncated: bool,
    result_artifact: Option<&'a Artifact>,
    error: Option<&'a str>,
    input_required: Option<&'a RawValue>,
    tracking_degraded: bool,
    last_poll_error: Option<&'a str>,
}

fn body(facts: &Facts<'_>) -> String {
    let Snapshot { status, result, preview, is_truncated, artifact, error, input_required, rpc_error: _ } =
        facts.snapshot;
    let raw =
        |text: &'_ Option<String>| text.as_deref().and_then(|text| serde_json::from_str::<Box<RawValue>>(text).ok());
    let (result, input_required) = (raw(result), raw(input_required));
    let body = Body {
        task_id: facts.task_id,
        task_name: facts.task_name,
        status: *status,
        error_code: status.error_code(),
        result: result.as_deref(),
        result_preview: preview.as_deref(),
        result_truncated: *is_truncated,
        result_artifact: artifact.as_ref(),
        error: error.as_deref(),
        input_required: input_required.as_deref(),
        tracking_degraded: facts.degraded_by.is_some(),
        last_poll_error: facts.degraded_by,
    };
    // Strings, booleans and raw JSON always become JSON.
    serde_json::to_string(&body).unwrap_or_default()
}

/// Of sorted compact JSON, so that a remote that writes members in another order tells nothing new.
fn fingerprint(body: &str) -> Fingerprint {
    let sorted = serde_json::from_str::<&RawValue>(body).map(sorted).unwrap_or_default();
    Fingerprint(Sha256::digest(sorted).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(status: Status) -> Snapshot {
        Snapshot::bare(status)
    }

    fn told(
        before: Status,
        fingerprint: Option<Fingerprint>,
        now: &Snapshot,
        degraded_by: Option<&str>,
    ) -> Option<Event> {
        let facts = Facts { task_id: TaskId([1; 16]), task_name: "report", snapshot: now, degraded_by };
        event(before, fingerprint, &facts)
    }

    #[test]
    fn every_change_of_the_status_is_an_event_and_those_for_attention_are_delivered() {
        // Contract 6.2, attention; invariant T3.
        for now in [Status::Submitted, Status::Working, Status::InputRequired, Status::Completed, Status::Unknown] {
            let before = if now == Status::Submitted { Status::Intended } else { Status::Submitted };
            let event = told(before, None, &snapshot(now), None).unwrap();
            assert_eq!((event.status, event.attention.is_some()), (now, now.is_attention()));
        }
        assert_eq!(told(Status::Working, None, &snapshot(Status::Working), None), None);
    }

    #[test]
    fn a_repeated_question_is_told_once_and_another_one_again() {
        // Contract 6.9, fingerprint.
        let asked =
            |question: &str| Snapshot { input_required: Some(question.to_owned()), ..snapshot(Status::InputRequired) };
        let first = told(Status::Working, None, &asked(r#"{"q":1,"p":2}"#), None).unwrap();
        let again = |question: &str| told(Status::InputRequired, first.attention, &asked(question), None);
        assert_eq!(again(r#"{"q":1,"p":2}"#), None);
        assert_eq!(again(r#"{"p":2,"q":1}"#), None, "the order of members tells nothing");
        assert_ne!(again(r#"{"q":2,"p":2}"#).unwrap().attention, first.attention);
    }

    #[test]
    fn a_task_that_is_hard_to_follow_is_told_with_its_error() {
        // Contract 6.9, tracking degraded.
        let event = told(Status::Working, None, &snapshot(Status::Working), Some("no answer")).unwrap();
        assert!(event.attention.is_some());
        let body: serde_json::Value = serde_json::from_str(&event.body).unwrap();
        assert_eq!((&body["tracking_degraded"], &body["last_poll_error"]), (&true.into(), &"no answer".into()));
        assert_eq!(told(Status::Working, event.attention, &snapshot(Status::Working), Some("no answer")), None);
    }

    #[test]
    fn an_event_says_what_the_contract_lists_and_results_stay_as_they_are() {
        // Contract 6.9, event content.
        let done = Snapshot {
            result: Some(r#"{"b":9223372036854775809123,"a":1.0}"#.to_owned()),
            ..snapshot(Status::Completed)
        };
        let event = told(Status::Working, None, &done, None).unwrap();
        assert!(event.body.contains(r#""result":{"b":9223372036854775809123,"a":1.0},"#), "{}", event.body);
        let body: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&event.body).unwrap();
        let keys: Vec<&String> = body.keys().collect();
        let expected = [
            "task_id",
            "task_name",
            "status",
            "result",
            "result_preview",
            "result_truncated",
            "result_artifact",
            "error",
            "input_required",
            "tracking_degraded",
            "last_poll_error",
        ];
        assert_eq!(keys, expected);
        let unknown = told(Status::Intended, None, &snapshot(Status::Unknown), None).unwrap();
        assert!(unknown.body.contains(r#""status":"failed","error_code":"outcome_unknown""#), "{}", unknown.body);
    }
}
