//! The answer of a status tool (contract 6.7, column status).

use serde_json::value::RawValue;

use super::payload::{Misread, artifact, given, optional_text, payload, protocol, required_text, same_task};
use crate::raw::Members;
use crate::task::limits::TaskLimits;
use crate::task::snapshot::Report;
use crate::task::status::Status;

/// The `error_code` of a task that the remote does not know: it failed for good, whatever its status says.
pub const TASK_NOT_FOUND: &str = "task_not_found";

/// The error of such a task when the remote gives none.
const NOT_FOUND: &str = "the MCP server no longer knows the task";

/// Reads what the remote says of the task `remote_id`.
///
/// # Errors
/// The tool failed, or its answer breaks the contract.
pub fn status(result: &RawValue, remote_id: &str, limits: &TaskLimits) -> Result<Report, Misread> {
    let most = usize::try_from(limits.max_status_bytes).unwrap_or(usize::MAX);
    if result.get().len() > most {
        return Err(protocol(format!("the answer has more than {most} bytes; look at `mcp_tasks.max_status_bytes`")));
    }
    let payload = payload(result, "status")?;
    same_task(&payload, remote_id)?;
    let error = optional_text(&payload, "error")?.map(|text| text.into_owned());
    let code = payload.get("error_code").and_then(crate::raw::text);
    if code.is_some_and(|code| code == TASK_NOT_FOUND) {
        let error = Some(error.unwrap_or_else(|| NOT_FOUND.to_owned()));
        return Ok(Report { error, is_unknown: true, ..Report::of(Status::Failed) });
    }
    let status = word(&required_text(&payload, "status")?)?;
    Ok(Report {
        result: given(&payload, "result").map(RawValue::to_owned),
        artifact: artifact(&payload)?,
        error,
        input_required: input_required(&payload, status)?,
        poll_after_seconds: poll_after(&payload)?,
        ..Report::of(status)
    })
}

fn word(word: &str) -> Result<Status, Misread> {
    match word {
        "running" => Ok(Status::Working),
        "input_required" => Ok(Status::InputRequired),
        "completed" => Ok(Status::Completed),
        "failed" => Ok(Status::Failed),
        "cancelled" => Ok(Status::Cancelled),
        _ => Err(protocol("the status is none that a task can have")),
    }
}

/// The question, which is there if and only if the task waits for an answer.
fn input_required(payload: &Members<'_>, status: Status) -> Result<Option<Box<RawValue>>, Misread> {
    let question = given(payload, "input_required");
    if question.is_some_and(|question| Members::of(question).is_none()) {
        return Err(protocol("input_required is not an object"));
    }
    if status != Status::InputRequired {
        return Ok(None);
    }
    question.map(|question| Some(question.to_owned())).ok_or_else(|| protocol("input_required is missing"))
}

/// The time until the next question, in seconds, as the remote gave it.
fn poll_after(payload: &Members<'_>) -> Result<Option<f64>, Misread> {
    let Some(value) = given(payload, "poll_after_seconds") else { return Ok(None) };
    // What a float cannot hold, such as 1e999, is an error of the reader.
    match serde_json::from_str::<f64>(value.get()) {
        Ok(seconds) if seconds.is_finite() && seconds > 0.0 => Ok(Some(seconds)),
        _ => Err(protocol("poll_after_seconds is not a positive number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(structured: &str) -> Result<Report, Misread> {
        let result = format!(r#"{{"content":[],"structuredContent":{structured}}}"#);
        status(&RawValue::from_string(result).unwrap(), "r", &TaskLimits::default())
    }

    fn text(raw: Option<&RawValue>) -> Option<&str> {
        raw.map(RawValue::get)
    }

    #[test]
    fn each_word_is_a_status() {
        // Contract 6.2, remote words.
        for (word, status) in [
            ("running", Status::Working),
            ("completed", Status::Completed),
            ("failed", Status::Failed),
            ("cancelled", Status::Cancelled),
        ] {
            assert_eq!(read(&format!(r#"{{"task_id":"r","status":"{word}"}}"#)).unwrap().status, status);
        }
        let asked = read(r#"{"task_id":"r","status":"input_required","input_required":{"q":1}}"#).unwrap();
        assert_eq!((asked.status, text(asked.input_required.as_deref())), (Status::InputRequired, Some(r#"{"q":1}"#)));
    }

    #[test]
    fn results_and_artifacts_are_kept_and_extra_fields_dropped() {
        // Contract 6.7, result and result_artifact.
        let done = r#"{"task_id":"r","status":"completed","result":{"b":9223372036854775809,"a":1.0},
            "result_artifact":{"uri":"file:///x","mime_type":"text/csv","size":3},"extra":1}"#;
        let done = read(done).unwrap();
        assert_eq!(text(done.result.as_deref()), Some(r#"{"b":9223372036854775809,"a":1.0}"#));
        let artifact = done.artifact.unwrap();
        assert_eq!((artifact.uri.as_str(), artifact.mime_type.as_str()), ("file:///x", "text/csv"));
        for result in ["0", "false", "\"\"", "[]"] {
            let done = read(&format!(r#"{{"task_id":"r","status":"completed","result":{result}}}"#)).unwrap();
            assert_eq!(text(done.result.as_deref()), Some(result), "any JSON is kept");
        }
    }

    #[test]
    fn a_task_that_the_remote_does_not_know_has_failed_whatever_its_status() {
        // Contract 6.7, error_code.
        for (rest, error) in [
            (r#""status":"running""#, NOT_FOUND),
            (r#""status":"queued","error":"gone""#, "gone"),
            (r#""error":null"#, NOT_FOUND),
        ] {
            let lost = read(&format!(r#"{{"task_id":"r","error_code":"task_not_found",{rest}}}"#)).unwrap();
            assert_eq!((lost.status, lost.error.as_deref()), (Status::Failed, Some(error)));
        }
        let other = read(r#"{"task_id":"r","status":"running","error_code":"slow"}"#).unwrap();
        assert_eq!(other.status, Status::Working, "any other code is ignored");
    }

    #[test]
    fn what_breaks_the_contract_is_a_protocol_error() {
        // Contract 6.7, column status: permanent failures.
        for wrong in [
            r#"{"status":"running"}"#,
            r#"{"task_id":"","status":"running"}"#,
            r#"{"task_id":"other","status":"running"}"#,
            r#"{"task_id":"other","error_code":"task_not_found"}"#,
            r#"{"task_id":"r","status":"queued"}"#,
            r#"{"task_id":"r","status":"paused"}"#,
            r#"{"task_id":"r"}"#,
            r#"{"task_id":"r","status":"input_required"}"#,
            r#"{"task_id":"r","status":"input_required","input_required":null}"#,
            r#"{"task_id":"r","status":"input_required","input_required":"yes?"}"#,
            r#"{"task_id":"r","status":"running","input_required":[]}"#,
            r#"{"task_id":"r","status":"completed","result_artifact":{"uri":"x"}}"#,
            r#"{"task_id":"r","status":"completed","result_artifact":{"uri":"","mime_type":"a"}}"#,
            r#"{"task_id":"r","status":"completed","result_artifact":"x"}"#,
            r#"{"task_id":"r","status":"failed","error":7}"#,
            "null",
            "[]",
        ] {
            assert!(matches!(read(wrong), Err(Misread::Protocol(_))), "{wrong}");
        }
    }

    #[test]
    fn the_time_until_the_next_poll_is_a_positive_json_number() {
        // Contract 6.7, poll_after_seconds; architecture.md §9, numbers.
        let with = |hint: &str| read(&format!(r#"{{"task_id":"r","status":"running","poll_after_seconds":{hint}}}"#));
        for (hint, seconds) in [("12.5", Some(12.5)), ("1", Some(1.0)), ("1e20", Some(1e20)), ("null", None)] {
            assert_eq!(with(hint).unwrap().poll_after_seconds, seconds, "{hint}");
        }
        for wrong in ["0", "-1", "1e999", "\"5\"", "true", "[]"] {
            assert!(matches!(with(wrong), Err(Misread::Protocol(_))), "{wrong}");
        }
    }

    #[test]
    fn an_answer_of_more_bytes_than_allowed_is_not_read() {
        // architecture.md §10, oversized status answer.
        let limits = TaskLimits { max_status_bytes: 65_536, ..TaskLimits::default() };
        let payload = format!(r#"{{"task_id":"r","status":"running","x":"{}"}}"#, "x".repeat(65_536));
        let result = RawValue::from_string(format!(r#"{{"structuredContent":{payload}}}"#)).unwrap();
        let refused = status(&result, "r", &limits).unwrap_err();
        assert!(refused.to_string().contains("mcp_tasks.max_status_bytes"), "{refused}");
    }
}
