//! Settings of durable tasks, and of the kind of database (contract 6.1, 6.12). Read once, at the start.

use caribou_core::bounds;
use caribou_core::task::{MissingTool, TaskLimits};
use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Notify;

const SECONDS_OF_A_DAY: u64 = 24 * 3_600;

/// Tasks that outlive a call: submitted by a tool of a toolset, followed to their end whatever becomes of a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct McpTasks {
    /// Whether they are followed. When absent: if there is a database.
    #[garde(skip)]
    pub enabled: Option<bool>,
    /// Seconds between two polls of a task whose server names no time of its own.
    #[garde(range(min = 1, max = 300))]
    pub poll_interval_seconds: u32,
    /// How long a replica may work on one task before another one may. Half of it is the longest that a server may take
    /// to answer. Seconds.
    #[garde(range(min = 5, max = 3_600))]
    pub lease_seconds: u32,
    /// Polls at the same time in one replica.
    #[garde(range(min = 1, max = 64))]
    pub max_concurrent_polls: u32,
    /// The longest wait after an error. Seconds.
    #[garde(range(min = 1, max = 3_600))]
    pub max_poll_backoff_seconds: u32,
    /// The shortest time between two polls of a task that waits for input. Seconds.
    #[garde(range(min = 5, max = 3_600))]
    pub input_required_poll_interval_seconds: u32,
    /// Errors in a row from which on a task counts as hard to follow.
    #[garde(range(min = 1, max = 100))]
    pub tracking_degraded_after_errors: u32,
    /// The largest result that is stored, as compact JSON. Bytes.
    #[garde(range(min = 1_024, max = 10_485_760))]
    pub max_result_bytes: u32,
    /// Characters that are kept of a larger one.
    #[garde(range(min = 64, max = 100_000))]
    pub result_preview_max_chars: u32,
    /// The largest answer of a server about a task. Bytes.
    #[garde(range(min = 65_536, max = 1_073_741_824))]
    pub max_status_bytes: u32,
    /// What it costs that a server lacks a tool of its toolsets.
    #[garde(skip)]
    pub missing_tool: WhenToolMissing,
    /// Attempts at the same time for tasks of one server, by one replica: a slow server keeps no more slots from others.
    #[garde(range(min = 1, max = 64))]
    pub per_server: u32,
    /// Polls of one server in a second, by one replica.
    #[garde(range(min = 1, max = 100_000))]
    pub polls_per_second: u32,
    /// Tasks are deleted so many days after their end, once everybody was told.
    #[garde(range(min = 1, max = 36_500))]
    pub retention_days: u32,
    /// Who is told about them.
    #[garde(dive)]
    pub notify: Notify,
}

/// What it costs that a server lacks a tool of its toolsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenToolMissing {
    /// No tool of any server is shown, so that it is noticed.
    #[default]
    FailAll,
    /// No tool of that server is shown.
    FailServer,
}

/// The kind of database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Database {
    /// `memory`: nothing outlives this process, and there are no durable tasks, keys, personal connections and audit
    /// rows. `sqlite` and `postgres` must be what `database_url` names. When absent: what `database_url` names.
    #[garde(skip)]
    pub backend: Option<Backend>,
}

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// None.
    Memory,
    /// A SQLite file.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

impl Default for McpTasks {
    fn default() -> Self {
        let limits = TaskLimits::default();
        Self {
            enabled: limits.enabled,
            poll_interval_seconds: limits.poll_interval_seconds,
            lease_seconds: limits.lease_seconds,
            max_concurrent_polls: limits.max_concurrent_polls,
            max_poll_backoff_seconds: limits.max_poll_backoff_seconds,
            input_required_poll_interval_seconds: limits.input_required_poll_interval_seconds,
            tracking_degraded_after_errors: limits.tracking_degraded_after_errors,
            max_result_bytes: limits.max_result_bytes,
            result_preview_max_chars: limits.result_preview_max_chars,
            max_status_bytes: limits.max_status_bytes,
            missing_tool: WhenToolMissing::default(),
            per_server: limits.per_server,
            polls_per_second: limits.polls_per_second,
            retention_days: u32::try_from(bounds::TASK_RETENTION.as_secs() / SECONDS_OF_A_DAY).unwrap_or(u32::MAX),
            notify: Notify::default(),
        }
    }
}

impl McpTasks {
    /// What the runtime is told.
    pub fn limits(&self) -> TaskLimits {
        TaskLimits {
            enabled: self.enabled,
            poll_interval_seconds: self.poll_interval_seconds,
            lease_seconds: self.lease_seconds,
            max_concurrent_polls: self.max_concurrent_polls,
            max_poll_backoff_seconds: self.max_poll_backoff_seconds,
            input_required_poll_interval_seconds: self.input_required_poll_interval_seconds,
            tracking_degraded_after_errors: self.tracking_degraded_after_errors,
            max_result_bytes: self.max_result_bytes,
            result_preview_max_chars: self.result_preview_max_chars,
            max_status_bytes: self.max_status_bytes,
            missing_tool: match self.missing_tool {
                WhenToolMissing::FailAll => MissingTool::FailAll,
                WhenToolMissing::FailServer => MissingTool::FailServer,
            },
            per_server: self.per_server,
            polls_per_second: self.polls_per_second,
        }
    }

    /// How long an ended task is kept.
    pub fn retention(&self) -> std::time::Duration {
        std::time::Duration::from_secs(u64::from(self.retention_days) * SECONDS_OF_A_DAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{File, Inputs, Loaded, load};

    #[test]
    fn the_defaults_are_those_of_the_contract() {
        // Contract 6.1.
        assert_eq!(McpTasks::default().limits(), TaskLimits::default());
    }

    #[test]
    fn each_bound_has_a_key_and_a_variable_and_names_its_range() {
        // Contract 6.1; durability.md 1.10.
        type Key = (&'static str, u32, u32, fn(TaskLimits) -> u32);
        let keys: [Key; 11] = [
            ("poll_interval_seconds", 1, 300, |limits| limits.poll_interval_seconds),
            ("lease_seconds", 5, 3_600, |limits| limits.lease_seconds),
            ("max_concurrent_polls", 1, 64, |limits| limits.max_concurrent_polls),
            ("max_poll_backoff_seconds", 1, 3_600, |limits| limits.max_poll_backoff_seconds),
            ("input_required_poll_interval_seconds", 5, 3_600, |limits| limits.input_required_poll_interval_seconds),
            ("tracking_degraded_after_errors", 1, 100, |limits| limits.tracking_degraded_after_errors),
            ("max_result_bytes", 1_024, 10_485_760, |limits| limits.max_result_bytes),
            ("result_preview_max_chars", 64, 100_000, |limits| limits.result_preview_max_chars),
            ("max_status_bytes", 65_536, 1_073_741_824, |limits| limits.max_status_bytes),
            ("per_server", 1, 64, |limits| limits.per_server),
            ("polls_per_second", 1, 100_000, |limits| limits.polls_per_second),
        ];
        for (key, least, most, read) in keys {
            let variable = format!("CARIBOU_MCP_TASKS_{}", key.to_uppercase());
            let loaded = |value: u32| {
                let env = |name: &str| (name == variable).then(|| value.to_string());
                let by_variable = load(&Inputs { file: None, env: &env, flags: Vec::new() });
                let text = format!("mcp_tasks: {{{key}: {value}}}\n");
                let file = Some(File { path: "/c.yaml".into(), text });
                let by_file = load(&Inputs { file, env: &|_| None, flags: Vec::new() });
                assert_eq!(by_variable.settings.mcp_tasks, by_file.settings.mcp_tasks, "{key}");
                (by_file.settings.mcp_tasks.limits(), by_variable.problems, by_file.problems)
            };
            for value in [least, most] {
                let (limits, problems, others) = loaded(value);
                assert_eq!((read(limits), problems, others, limits.check()), (value, vec![], vec![], Ok(())), "{key}");
            }
            for value in [least - 1, most + 1] {
                let (limits, problems, others) = loaded(value);
                assert_eq!(read(limits), read(TaskLimits::default()), "{key}: what is wrong is left as it was");
                for problem in problems.iter().chain(&others) {
                    assert_eq!(problem.path, format!("$.mcp_tasks.{key}"));
                    assert_eq!(problem.mend, format!("write a whole number from {least} to {most}"));
                }
                assert_eq!((problems.len(), problems[0].file.as_str(), others.len()), (1, variable.as_str(), 1));
            }
        }
    }

    #[test]
    fn nested_settings_have_variables_too() {
        let values = [
            ("CARIBOU_MCP_TASKS_ENABLED", "false"),
            ("CARIBOU_MCP_TASKS_MISSING_TOOL", "fail_server"),
            ("CARIBOU_MCP_TASKS_RETENTION_DAYS", "7"),
            ("CARIBOU_MCP_TASKS_NOTIFY_LOG", "true"),
            ("CARIBOU_MCP_TASKS_NOTIFY_WEBHOOK_URL", "https://example.com/hook"),
            ("CARIBOU_DATABASE_BACKEND", "sqlite"),
        ];
        let env = |name: &str| values.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        let Loaded { settings, problems } = load(&Inputs { file: None, env: &env, flags: Vec::new() });
        assert_eq!(problems, []);
        let tasks = &settings.mcp_tasks;
        assert_eq!((tasks.enabled, tasks.missing_tool), (Some(false), WhenToolMissing::FailServer));
        assert_eq!(tasks.retention(), std::time::Duration::from_secs(7 * SECONDS_OF_A_DAY));
        assert!(tasks.notify.log && tasks.notify.webhook.options().is_some());
        assert_eq!(settings.database.backend, Some(Backend::Sqlite));
    }
}
