//! What is stored of a remote's answer: bounded, and never cut JSON (contract 6.8).
//!
//! A [`Report`] is what a driver read; a [`Snapshot`] is what may be stored of it. Every answer goes through
//! [`Snapshot::of`]: that of a submit, of a poll and of a cancel.

use serde::Serialize;
use serde_json::value::RawValue;

use super::json::{compact, cut};
use super::limits::{MAX_ARTIFACT_BYTES, MAX_ERROR_CHARS, MAX_INPUT_BYTES, TaskLimits};
use super::parse::Misread;
use super::rpc_error::RpcError;
use super::status::Status;
use crate::raw;

/// What a remote says of a task, as it said it.
#[derive(Clone, Debug)]
pub struct Report {
    /// Where it stands.
    pub status: Status,
    /// Its result.
    pub result: Option<Box<RawValue>>,
    /// Where a result lies that is no part of the answer.
    pub artifact: Option<Artifact>,
    /// Why it failed, in the remote's words.
    pub error: Option<String>,
    /// The JSON-RPC error that the call ended with which the task stands for.
    pub rpc_error: Option<RpcError>,
    /// What the remote asks.
    pub input_required: Option<Box<RawValue>>,
    /// When the remote wants to be asked again, in seconds: finite and positive.
    pub poll_after_seconds: Option<f64>,
    /// Whether the remote says that it does not know the task; its status is `failed` then.
    pub is_unknown: bool,
}

impl Report {
    /// Of a task of which nothing more is known.
    pub fn of(status: Status) -> Self {
        Self {
            status,
            result: None,
            artifact: None,
            error: None,
            rpc_error: None,
            input_required: None,
            poll_after_seconds: None,
            is_unknown: false,
        }
    }
}

/// A result that lies elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Artifact {
    /// Where.
    pub uri: String,
    /// What it is.
    pub mime_type: String,
}

/// What is stored of a task's state. Equal states are equal snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Where it stands.
    pub status: Status,
    /// Its result as compact JSON.
    pub result: Option<String>,
    /// The beginning of a result that is too large.
    pub preview: Option<String>,
    /// Whether there was a result that is too large.
    pub is_truncated: bool,
    /// Where a result lies that is no part of the answer.
    pub artifact: Option<Artifact>,
    /// Why it failed.
    pub error: Option<String>,
    /// The JSON-RPC error that the call ended with which the task stands for, as compact JSON; see [`RpcError::parse`].
    pub rpc_error: Option<String>,
    /// What the remote asks, as compact JSON.
    pub input_required: Option<String>,
}

impl Snapshot {
    /// Of a task of which nothing more is known.
    pub fn bare(status: Status) -> Self {
        Self {
            status,
            result: None,
            preview: None,
            is_truncated: false,
            artifact: None,
            error: None,
            rpc_error: None,
            input_required: None,
        }
    }

    /// Of a task that can no longer be followed, or never could; `why` is cut to what is stored.
    pub fn ended(status: Status, why: &str) -> Self {
        Self { error: Some(cut(why, MAX_ERROR_CHARS)), ..Self::bare(status) }
    }

    /// What may be stored of `report`.
    ///
    /// # Errors
    /// A question or a reference that is too large to be stored: the task has failed, and nothing of it is kept.
    pub fn of(report: Report, limits: &TaskLimits) -> Result<Self, Misread> {
        let too_large = |name, most| Misread::Protocol(format!("{name} has more than {most} bytes"));
        let artifact_bytes = report.artifact.as_ref().map(|artifact| {
            // Two strings always become JSON.
            serde_json::to_string(artifact).map_or(usize::MAX, |text| text.len())
        });
        if artifact_bytes.is_some_and(|bytes| bytes > MAX_ARTIFACT_BYTES) {
            return Err(too_large("result_artifact", MAX_ARTIFACT_BYTES));
        }
        let input_required = report.input_required.as_deref().map(compact);
        if input_required.as_ref().is_some_and(|text| text.len() > MAX_INPUT_BYTES) {
            return Err(too_large("input_required", MAX_INPUT_BYTES));
        }
        let mut snapshot = Self {
            artifact: report.artifact,
            error: report.error.map(|text| cut(&text, MAX_ERROR_CHARS)),
            rpc_error: report.rpc_error.map(|error| error.text()),
            input_required,
            ..Self::bare(report.status)
        };
        if let Some(result) = report.result {
            snapshot.keep(&result, limits);
        }
        Ok(snapshot)
    }

    /// Keeps a result whole or not at all.
    fn keep(&mut self, result: &RawValue, limits: &TaskLimits) {
        let text = compact(result);
        if text.len() <= usize::try_from(limits.max_result_bytes).unwrap_or(usize::MAX) {
            self.result = Some(text);
            return;
        }
        let most = usize::try_from(limits.result_preview_max_chars).unwrap_or(usize::MAX);
        let whole = raw::text(result).map_or(text, |text| text.into_owned());
        self.is_truncated = true;
        self.preview = Some(cut(&whole, most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: String) -> Box<RawValue> {
        RawValue::from_string(text).unwrap()
    }

    fn limits() -> TaskLimits {
        TaskLimits { max_result_bytes: 1_024, result_preview_max_chars: 64, ..TaskLimits::default() }
    }

    fn with_result(text: String) -> Snapshot {
        let artifact = Some(Artifact { uri: "u".to_owned(), mime_type: "m".to_owned() });
        let report = Report { result: Some(raw(text)), artifact, ..Report::of(Status::Completed) };
        Snapshot::of(report, &limits()).unwrap()
    }

    #[test]
    fn a_result_of_the_largest_size_is_kept_and_a_larger_one_leaves_its_beginning() {
        // Contract 6.8, result.
        let fits = with_result(format!("[ \"{}\" ]", "x".repeat(1_020)));
        assert_eq!(fits.result.map(|text| text.len()), Some(1_024), "blanks do not count");
        assert!(!fits.is_truncated && fits.preview.is_none());

        let object = with_result(format!("{{ \"a\": \"{}\" }}", "é".repeat(1_024)));
        assert_eq!((object.result.as_ref(), object.is_truncated), (None, true));
        assert_eq!(object.preview, Some(format!("{{\"a\":\"{}", "é".repeat(58))));
        assert!(object.artifact.is_some(), "the artifact is kept");

        let string = with_result(format!("\"\\n{}\"", "é".repeat(1_024)));
        assert_eq!(string.preview, Some(format!("\n{}", "é".repeat(63))), "of a string its own characters");
    }

    #[test]
    fn an_error_is_cut() {
        // Contract 6.8, error.
        let report = Report { error: Some("é".repeat(4_001)), ..Report::of(Status::Failed) };
        assert_eq!(Snapshot::of(report, &limits()).unwrap().error.map(|text| text.chars().count()), Some(4_000));
        assert_eq!(Snapshot::ended(Status::Failed, &"x".repeat(5_000)).error.map(|text| text.len()), Some(4_000));
    }

    #[test]
    fn a_question_or_a_reference_that_is_too_large_is_a_protocol_error() {
        // Contract 6.8, result_artifact and input_required.
        let question = |bytes: usize| {
            let question = raw(format!("{{\"q\": \"{}\"}}", "x".repeat(bytes - 8)));
            Snapshot::of(Report { input_required: Some(question), ..Report::of(Status::InputRequired) }, &limits())
        };
        assert_eq!(question(65_536).unwrap().input_required.map(|text| text.len()), Some(65_536));
        assert!(matches!(question(65_537), Err(Misread::Protocol(_))));
        let artifact = |bytes: usize| {
            let artifact = Artifact { uri: "u".repeat(bytes - 26), mime_type: "m".to_owned() };
            Snapshot::of(Report { artifact: Some(artifact), ..Report::of(Status::Completed) }, &limits())
        };
        assert!(artifact(65_536).is_ok());
        assert!(matches!(artifact(65_537), Err(Misread::Protocol(_))));
    }

    #[test]
    fn a_state_that_means_the_same_is_the_same_snapshot() {
        let one = with_result("{ \"a\" : 1 }".to_owned());
        assert_eq!(one, with_result("{\"a\":1}".to_owned()));
    }
}
