//! The answer of a cancel tool: how the task really ended (contract 6.7, column cancel).

use serde_json::value::RawValue;

use super::payload::{Misread, artifact, given, optional_text, payload, protocol, required_text, same_task};
use crate::task::snapshot::Report;
use crate::task::status::Status;

/// Reads how the task `remote_id` ended; it may have completed or failed before it could be cancelled.
///
/// # Errors
/// The tool failed, or its answer is no end. Both are tried again (contract 6.7, note).
pub fn cancel(result: &RawValue, remote_id: &str) -> Result<Report, Misread> {
    let payload = payload(result, "cancel")?;
    same_task(&payload, remote_id)?;
    let status = match &*required_text(&payload, "status")? {
        "cancelled" => Status::Cancelled,
        "completed" => Status::Completed,
        "failed" => Status::Failed,
        _ => return Err(protocol("the status of a cancelled task must be terminal")),
    };
    Ok(Report {
        result: given(&payload, "result").map(RawValue::to_owned),
        artifact: artifact(&payload)?,
        error: optional_text(&payload, "error")?.map(|text| text.into_owned()),
        ..Report::of(status)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(structured: &str) -> Result<Report, Misread> {
        let result = format!(r#"{{"content":[],"structuredContent":{structured}}}"#);
        cancel(&RawValue::from_string(result).unwrap(), "r")
    }

    #[test]
    fn a_cancelled_task_may_have_ended_in_any_way() {
        // Contract 6.6, cancel.
        for (word, status) in
            [("cancelled", Status::Cancelled), ("completed", Status::Completed), ("failed", Status::Failed)]
        {
            let ended = read(&format!(
                r#"{{"task_id":"r","status":"{word}","result":[1],"error":"e","error_code":"task_not_found"}}"#
            ));
            let ended = ended.unwrap();
            assert_eq!((ended.status, ended.error.as_deref()), (status, Some("e")), "the code is ignored");
            assert_eq!(ended.result.as_deref().map(RawValue::get), Some("[1]"));
        }
    }

    #[test]
    fn anything_else_is_a_protocol_error() {
        // Contract 6.7, column cancel.
        for wrong in [
            r#"{"task_id":"r","status":"running"}"#,
            r#"{"task_id":"r","status":"input_required","input_required":{}}"#,
            r#"{"task_id":"r","status":"paused"}"#,
            r#"{"task_id":"r"}"#,
            r#"{"task_id":"other","status":"cancelled"}"#,
            r#"{"status":"cancelled"}"#,
            r#"{"task_id":"r","status":"completed","result_artifact":{}}"#,
            "null",
        ] {
            assert!(matches!(read(wrong), Err(Misread::Protocol(_))), "{wrong}");
        }
    }
}
