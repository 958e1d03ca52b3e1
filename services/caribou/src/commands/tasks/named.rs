//! One task as the command line names it, and what is read of it.

use anyhow::bail;
use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::commands::arguments::Target;
use crate::commands::output;
use crate::commands::usage::Usage;

/// Whose thread it is.
#[derive(Debug, Args)]
pub(super) struct Whose {
    /// Whose thread
    #[arg(long)]
    pub(super) user: Option<String>,
    /// In which thread
    #[arg(long, default_value = "default")]
    pub(super) thread: String,
}

/// One task of a thread, and the replica that is asked.
#[derive(Debug, Args)]
pub(super) struct Named {
    /// The task, as `tasks list` shows it
    task: String,
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    pub(super) target: Target,
}

impl Whose {
    /// The path of this thread's tasks, what follows it, and the query that names the user, with `more`.
    pub(super) fn path(&self, rest: &str, more: &[(&str, &str)]) -> String {
        let thread: String = byte_serialize(self.thread.as_bytes()).collect();
        let mut query = Serializer::new(String::new());
        if let Some(user) = &self.user {
            query.append_pair("user_id", user);
        }
        query.extend_pairs(more);
        let query = query.finish();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("/api/threads/{thread}/mcp-tasks{rest}{mark}{query}")
    }
}

impl Named {
    /// The path of this task, and what follows it.
    pub(super) fn path(&self, rest: &str) -> String {
        let task: String = byte_serialize(self.task.as_bytes()).collect();
        self.whose.path(&format!("/{task}{rest}"), &[])
    }
}

/// Refuses to ask nobody: a process that lives for one command follows no tasks.
pub(super) fn demand_replica(target: &Target) -> anyhow::Result<()> {
    if target.server.is_none() {
        bail!(Usage("name the replica that is asked with --server or CARIBOU_SERVER"));
    }
    Ok(())
}

/// A task, as far as people are shown it.
#[derive(Deserialize)]
pub(in crate::commands) struct Task {
    pub(in crate::commands) task_id: String,
    pub(in crate::commands) task_name: String,
    pub(in crate::commands) status: String,
    pub(super) error_code: Option<String>,
    pub(super) created_at: String,
    pub(super) updated_at: String,
    pub(in crate::commands) error: Option<String>,
    pub(super) cancel_requested: bool,
    pub(super) tracking_degraded: bool,
    #[serde(default)]
    pub(in crate::commands) result: Value,
    pub(super) result_preview: Option<String>,
    #[serde(default)]
    pub(in crate::commands) input_required: Value,
}

impl Task {
    /// The status, with what else matters of it.
    pub(super) fn state(&self) -> String {
        let mut state = self.error_code.as_ref().unwrap_or(&self.status).clone();
        let ends = !self.is_over() && self.cancel_requested;
        for (holds, word) in [(ends, "cancelling"), (self.tracking_degraded && !self.is_over(), "hard to reach")] {
            if holds {
                state = format!("{state}, {word}");
            }
        }
        state
    }

    pub(in crate::commands) fn is_over(&self) -> bool {
        is_end(&self.status)
    }

    /// How it ended: its result, what is left of it, or why there is none.
    pub(in crate::commands) fn end(&self) -> String {
        match (&self.result, &self.result_preview, &self.error) {
            (Value::String(text), ..) => text.clone(),
            (Value::Null, Some(preview), _) => format!("{preview}..."),
            (Value::Null, None, Some(error)) => output::printable(error),
            (Value::Null, None, None) => self.status.clone(),
            (result, ..) => format!("{result:#}"),
        }
    }
}

/// Whether a task with this status has ended.
pub(in crate::commands) fn is_end(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task(more: &Value) -> Task {
        let mut task = json!({
            "task_id": "t", "task_name": "report", "status": "working", "created_at": "c", "updated_at": "u",
            "error": null, "cancel_requested": false, "tracking_degraded": false,
        });
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(task).unwrap()
    }

    #[test]
    fn a_state_is_one_word_and_what_matters_besides() {
        for (more, state) in [
            (json!({}), "working"),
            (json!({"cancel_requested": true, "tracking_degraded": true}), "working, cancelling, hard to reach"),
            (json!({"status": "cancelled", "cancel_requested": true}), "cancelled"),
            (json!({"status": "failed", "error_code": "outcome_unknown"}), "outcome_unknown"),
        ] {
            assert_eq!(task(&more).state(), state);
        }
    }

    #[test]
    fn an_end_is_the_result_or_why_there_is_none() {
        for (more, end) in [
            (json!({"status": "completed", "result": "done"}), "done"),
            (json!({"status": "completed", "result": {"a": 1}}), "{\n  \"a\": 1\n}"),
            (json!({"status": "completed", "result_preview": "be"}), "be..."),
            (json!({"status": "failed", "error": "no\nink"}), "no ink"),
            (json!({"status": "cancelled"}), "cancelled"),
        ] {
            assert_eq!(task(&more).end(), end);
        }
    }

    #[test]
    fn names_are_quoted_in_paths() {
        let whose = Whose { user: Some("a&b".to_owned()), thread: "t/1".to_owned() };
        assert_eq!(whose.path("", &[("limit", "5")]), "/api/threads/t%2F1/mcp-tasks?user_id=a%26b&limit=5");
    }
}
