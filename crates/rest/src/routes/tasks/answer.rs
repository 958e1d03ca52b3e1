//! What the task routes answer with (contract 2.3): the item of a list, and all of one task.

use axum::Json;
use axum::response::{IntoResponse, Response};
use caribou_core::instant::rfc3339_micros;
use caribou_core::notification::Notified;
use caribou_core::task::limits::MAX_PUBLIC_ERROR_CHARS;
use caribou_core::task::{Artifact, Status};
use caribou_runtime::StoredTask;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::{IntoResponses, ToSchema};

use crate::openapi::{Meanings, problems};
use crate::router::Replica;

/// A task, as lists show it.
#[derive(Serialize, ToSchema)]
pub(crate) struct TaskItem {
    /// Its name here.
    #[schema(example = "mcp-task-0a0102030405060708090a0b0c0d0eff")]
    task_id: String,
    /// The name of its toolset, or of the tool that it was submitted with.
    #[schema(example = "report")]
    task_name: String,
    /// `submitted`, `working`, `input_required`, `completed`, `failed` or `cancelled`.
    #[schema(value_type = String, example = "working")]
    status: Status,
    /// `outcome_unknown` when nobody can tell whether the server accepted it; `status` is `failed` then. Else absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    error_code: Option<&'static str>,
    /// When it was submitted.
    #[schema(format = DateTime)]
    created_at: String,
    /// When its record changed last.
    #[schema(format = DateTime)]
    updated_at: String,
    /// Why it failed, up to 500 characters.
    #[schema(required = true)]
    error: Option<String>,
    /// Whether its server has not answered for a while; it is asked on, more slowly.
    tracking_degraded: bool,
    /// Whether it is to be cancelled, or was.
    cancel_requested: bool,
}

impl TaskItem {
    pub(super) fn new(replica: &Replica, task: &StoredTask) -> Self {
        let status = task.snapshot.status;
        let limits = replica.runtime.task_limits();
        Self {
            task_id: task.task.to_string(),
            task_name: task.task_name.clone(),
            status,
            error_code: status.error_code(),
            created_at: rfc3339_micros(task.created_us),
            updated_at: rfc3339_micros(task.updated_us),
            error: public(task.snapshot.error.as_deref()),
            tracking_degraded: limits.is_some_and(|limits| task.poll_errors >= limits.tracking_degraded_after_errors),
            cancel_requested: task.is_cancel_requested,
        }
    }
}

/// All that is shown of one task.
#[derive(Serialize, ToSchema)]
pub(crate) struct TaskDetail {
    #[serde(flatten)]
    item: TaskItem,
    /// When its server last said how it is.
    #[schema(required = true, format = DateTime)]
    last_polled_at: Option<String>,
    /// Why its server could not be asked the last time; null when it could.
    #[schema(required = true)]
    last_poll_error: Option<String>,
    /// Why it could not be cancelled the last time.
    #[schema(required = true)]
    last_cancel_error: Option<String>,
    /// How often cancelling it was tried.
    cancel_attempt_count: u32,
    /// How far its newest event is on its way: `none`, `pending`, `claimed`, `retry`, `dispatched`, `delivered` or
    /// `dead_letter`.
    #[schema(value_type = String, example = "delivered")]
    notification_status: Notified,
    /// Why that failed the last time.
    #[schema(required = true)]
    notification_error: Option<String>,
    /// How often that failed.
    notification_attempt_count: u32,
    /// Its result, whole or not at all.
    #[schema(value_type = Option<Object>, required = true)]
    result: Option<Box<RawValue>>,
    /// The beginning of a result that is too large to be kept.
    #[schema(required = true)]
    result_preview: Option<String>,
    /// Whether the result was too large to be kept.
    result_truncated: bool,
    /// Where a result lies that is no part of the answer: `{uri, mime_type}`.
    #[schema(value_type = Option<Object>, required = true)]
    result_artifact: Option<Artifact>,
    /// What it asks, while it waits for an answer.
    #[schema(value_type = Option<Object>, required = true)]
    input_required: Option<Box<RawValue>>,
    /// Answers that have not reached its server yet; absent when there is none.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(required = false)]
    waiting_answers: u32,
    /// Why an answer could not be brought, or was refused; absent when nothing is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    last_answer_error: Option<String>,
}

impl TaskDetail {
    pub(super) fn new(replica: &Replica, task: StoredTask) -> Self {
        let item = TaskItem::new(replica, &task);
        let raw = |text: Option<String>| text.and_then(|text| RawValue::from_string(text).ok());
        Self {
            item,
            last_polled_at: task.last_polled_us.map(rfc3339_micros),
            last_poll_error: public(task.last_poll_error.as_deref()),
            last_cancel_error: public(task.last_cancel_error.as_deref()),
            cancel_attempt_count: task.cancel_attempts,
            notification_status: task.notified,
            notification_error: public(task.notification_error.as_deref()),
            notification_attempt_count: task.notification_failures,
            result: raw(task.snapshot.result),
            result_preview: task.snapshot.preview,
            result_truncated: task.snapshot.is_truncated,
            result_artifact: task.snapshot.artifact,
            input_required: raw(task.snapshot.input_required),
            waiting_answers: task.waiting_answers,
            last_answer_error: public(task.last_answer_error.as_deref()),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references over")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// All of one task.
pub(super) fn detail(replica: &Replica, task: StoredTask) -> Response {
    Json(TaskDetail::new(replica, task)).into_response()
}

/// As much of an error as callers read.
fn public(error: Option<&str>) -> Option<String> {
    error.map(|text| text.chars().take(MAX_PUBLIC_ERROR_CHARS).collect())
}

/// Failures that all task routes share.
pub(super) struct TaskProblems;

impl IntoResponses for TaskProblems {
    fn responses() -> Meanings {
        problems(&[
            ("403", "`denied`: the caller may not act for this user"),
            ("500", "A fault of Caribou; its log says more under the same request id"),
            ("503", "`unavailable`: tasks are not followed here, or the store cannot be asked now"),
        ])
    }
}

/// Failures of a route that is about one task.
pub(super) struct OneTaskProblems;

impl IntoResponses for OneTaskProblems {
    fn responses() -> Meanings {
        problems(&[("404", "`not_found`: there is no such task, or it is another user's or another thread's")])
    }
}
