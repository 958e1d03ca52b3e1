//! The answer of a submit tool: the remote's handle (contract 6.6).

use serde_json::value::RawValue;

use super::payload::{Misread, optional_text, payload, protocol, required_text};

/// The remote has accepted a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The remote's name of it, of any length: whether it can be stored is looked at with the handle in hand, so that
    /// the task can be cancelled.
    pub remote_id: String,
}

/// Reads `{task_id, status: "running"}`.
///
/// # Errors
/// The tool failed, or its answer is something else.
pub fn submit(result: &RawValue) -> Result<Accepted, Misread> {
    let payload = payload(result, "submit")?;
    let remote_id = required_text(&payload, "task_id")?.into_owned();
    match optional_text(&payload, "status")?.as_deref() {
        Some("running") => Ok(Accepted { remote_id }),
        _ => Err(protocol("the status of a submitted task must be running")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(structured: &str) -> Result<Accepted, Misread> {
        let result = format!(r#"{{"content":[],"structuredContent":{structured}}}"#);
        submit(&RawValue::from_string(result).unwrap())
    }

    #[test]
    fn a_handle_is_a_name_and_the_word_running() {
        // Contract 6.6, submit.
        let accepted = read(r#"{"task_id":"r 1","status":"running","more":[]}"#).unwrap();
        assert_eq!(accepted.remote_id, "r 1");
        let long = "r".repeat(300);
        let accepted = read(&format!(r#"{{"task_id":"{long}","status":"running"}}"#)).unwrap();
        assert_eq!(accepted.remote_id, long, "contract 6.7: caught later, with the handle in hand");
    }

    #[test]
    fn anything_else_is_a_protocol_error() {
        // Contract 6.7, column submit.
        for wrong in [
            r#"{"status":"running"}"#,
            r#"{"task_id":"","status":"running"}"#,
            r#"{"task_id":" ","status":"running"}"#,
            r#"{"task_id":7,"status":"running"}"#,
            r#"{"task_id":"r"}"#,
            r#"{"task_id":"r","status":"queued"}"#,
            r#"{"task_id":"r","status":"completed"}"#,
            r#"{"task_id":"r","status":1}"#,
            "null",
            "\"r\"",
        ] {
            assert!(matches!(read(wrong), Err(Misread::Protocol(_))), "{wrong}");
        }
    }
}
