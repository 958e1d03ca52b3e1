//! Tasks as callers read them (contract 2.3): never the server's own name of one, what its driver remembers, or who holds
//! it; server, user and thread only for admins.

use caribou_core::notification::Notified;
use caribou_core::task::limits::MAX_PUBLIC_ERROR_CHARS;
use caribou_core::task::{Status, TaskId};
use caribou_proto::{Timestamp, v1};
use caribou_runtime::{CalledTool, StoredEvent, StoredTask};
use serde::Deserialize;

/// A task as lists show it; `degraded_after` poll errors in a row it counts as hard to follow.
pub(crate) fn task(task: &StoredTask, degraded_after: Option<u32>) -> v1::Task {
    v1::Task {
        task_id: task.task.to_string(),
        task_name: task.task_name.clone(),
        status: status(task.snapshot.status).into(),
        error_code: task.snapshot.status.error_code().map(str::to_owned),
        create_time: Some(instant(task.created_us)),
        update_time: Some(instant(task.updated_us)),
        error: public(task.snapshot.error.as_deref()),
        tracking_degraded: degraded_after.is_some_and(|errors| task.poll_errors >= errors),
        cancel_requested: task.is_cancel_requested,
        detail: None,
    }
}

/// All that is shown of one task.
pub(crate) fn detailed(stored: StoredTask, degraded_after: Option<u32>) -> v1::Task {
    let listed = task(&stored, degraded_after);
    let snapshot = stored.snapshot;
    let artifact =
        |found: caribou_core::task::Artifact| v1::TaskArtifact { uri: found.uri, mime_type: found.mime_type };
    let detail = v1::TaskDetail {
        last_poll_time: stored.last_polled_us.map(instant),
        last_poll_error: public(stored.last_poll_error.as_deref()),
        last_cancel_error: public(stored.last_cancel_error.as_deref()),
        cancel_attempt_count: stored.cancel_attempts,
        notification_status: notified(stored.notified).into(),
        notification_error: public(stored.notification_error.as_deref()),
        notification_attempt_count: stored.notification_failures,
        result: snapshot.result,
        result_preview: snapshot.preview,
        result_truncated: snapshot.is_truncated,
        result_artifact: snapshot.artifact.map(artifact),
        input_required: snapshot.input_required,
        waiting_answers: stored.waiting_answers,
        last_answer_error: public(stored.last_answer_error.as_deref()),
    };
    v1::Task { detail: Some(detail), ..listed }
}

/// A task as admins see it.
pub(crate) fn anybodys(stored: &StoredTask, degraded_after: Option<u32>) -> v1::AnybodysTask {
    v1::AnybodysTask {
        task: Some(task(stored, degraded_after)),
        user_id: stored.scope.user.as_str().to_owned(),
        thread_id: stored.scope.thread.as_str().to_owned(),
        server: stored.server.as_str().to_owned(),
    }
}

/// One change of a task.
pub(crate) fn change(event: StoredEvent) -> v1::TaskChange {
    let StoredEvent { seq, status: became, body, at_us } = event;
    v1::TaskChange { seq, status: status(became).into(), time: Some(instant(at_us)), event: body }
}

/// The call of a tool that is to make a task.
pub(crate) fn submitting(request: v1::SubmitTaskRequest) -> v1::CallToolRequest {
    let v1::SubmitTaskRequest { name, arguments, scope, run_id, tool_call_id, secrets, timeout_seconds } = request;
    v1::CallToolRequest { name, arguments, scope, run_id, tool_call_id, secrets, timeout_seconds, task: true }
}

/// What came of it.
pub(crate) fn submitted(called: &CalledTool, request_id: &str) -> v1::SubmitTaskResponse {
    let result = called.result.get();
    v1::SubmitTaskResponse { task_id: made(result), result: result.to_owned(), request_id: request_id.to_owned() }
}

/// The name of the task that a result tells of.
fn made(result: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(rename = "structuredContent")]
        told: Told,
        #[serde(rename = "isError", default)]
        is_error: bool,
    }
    #[derive(Deserialize)]
    struct Told {
        task_id: String,
    }
    let Answer { told, is_error } = serde_json::from_str(result).ok()?;
    // A server's own answer may hold a name of its own, which is none of ours.
    TaskId::parse(&told.task_id).filter(|_| !is_error).map(|task| task.to_string())
}

/// An instant in microseconds of the Unix epoch.
pub(super) fn instant(at_us: i64) -> Timestamp {
    let nanos = i32::try_from(at_us.rem_euclid(1_000_000) * 1_000).unwrap_or_default();
    Timestamp { seconds: at_us.div_euclid(1_000_000), nanos }
}

fn status(status: Status) -> v1::TaskStatus {
    match status {
        Status::Intended | Status::Submitted => v1::TaskStatus::Submitted,
        Status::Working => v1::TaskStatus::Working,
        Status::InputRequired => v1::TaskStatus::InputRequired,
        Status::Completed => v1::TaskStatus::Completed,
        Status::Failed | Status::Unknown => v1::TaskStatus::Failed,
        Status::Cancelled => v1::TaskStatus::Cancelled,
    }
}

fn notified(notified: Notified) -> v1::NotificationStatus {
    match notified {
        Notified::None => v1::NotificationStatus::None,
        Notified::Pending => v1::NotificationStatus::Pending,
        Notified::Claimed => v1::NotificationStatus::Claimed,
        Notified::Retry => v1::NotificationStatus::Retry,
        Notified::Dispatched => v1::NotificationStatus::Dispatched,
        Notified::Delivered => v1::NotificationStatus::Delivered,
        Notified::DeadLetter => v1::NotificationStatus::DeadLetter,
    }
}

/// As much of an error as callers read.
fn public(error: Option<&str>) -> Option<String> {
    error.map(|text| text.chars().take(MAX_PUBLIC_ERROR_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_is_the_word_of_the_contract() {
        // Contract 2.3, status and notification_status: the same words over every door.
        for stored in Status::ALL {
            let name = status(stored).as_str_name();
            assert_eq!(name.strip_prefix("TASK_STATUS_").unwrap().to_lowercase(), stored.word());
        }
        for stored in [
            Notified::None,
            Notified::Pending,
            Notified::Claimed,
            Notified::Retry,
            Notified::Dispatched,
            Notified::Delivered,
            Notified::DeadLetter,
        ] {
            let word = serde_json::to_string(&stored).unwrap().replace('"', "");
            let name = notified(stored).as_str_name();
            assert_eq!(name.strip_prefix("NOTIFICATION_STATUS_").unwrap().to_lowercase(), word);
        }
    }

    #[test]
    fn instants_before_the_epoch_are_instants_too() {
        assert_eq!(instant(1_500_000), Timestamp { seconds: 1, nanos: 500_000_000 });
        assert_eq!(instant(-1), Timestamp { seconds: -1, nanos: 999_999_000 });
    }

    #[test]
    fn only_a_task_of_ours_is_told_of() {
        let ours = format!("mcp-task-{}", "ab".repeat(16));
        assert_eq!(made(&format!(r#"{{"structuredContent":{{"task_id":"{ours}"}}}}"#)), Some(ours.clone()));
        for other in [
            r#"{"structuredContent":{"task_id":"job-7"}}"#.to_owned(),
            format!(r#"{{"isError":true,"structuredContent":{{"task_id":"{ours}"}}}}"#),
            r#"{"content":[]}"#.to_owned(),
        ] {
            assert_eq!(made(&other), None, "{other}");
        }
    }
}
