//! Settings of the audit log (architecture.md §2, §10).

use std::time::Duration;

use caribou_core::bounds;
use caribou_runtime::{AuditOptions, OnFull};
use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SECONDS_OF_A_DAY: u64 = 24 * 3_600;

/// Who did what, on record: a row in the database for each call and each change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Audit {
    /// Whether there is a record. It holds names and outcomes, never arguments, results or secrets.
    #[garde(skip)]
    pub enabled: bool,
    /// What becomes of requests while the database is away and no more rows fit into memory.
    #[garde(skip)]
    pub on_full: WhenFull,
    /// Rows are deleted after this many days.
    #[garde(range(min = 1, max = 36_500))]
    pub retention_days: u32,
}

/// What becomes of requests whose row has no place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// They are refused as `unavailable`, before anything is done.
    #[default]
    Refuse,
    /// They are served; the missing rows are counted in `caribou_audit_dropped`.
    DropAndCount,
}

impl Default for Audit {
    fn default() -> Self {
        let days = bounds::AUDIT_RETENTION.as_secs() / SECONDS_OF_A_DAY;
        let retention_days = u32::try_from(days).unwrap_or(u32::MAX);
        Self { enabled: true, on_full: WhenFull::default(), retention_days }
    }
}

impl Audit {
    /// What the runtime is told.
    pub fn options(&self) -> AuditOptions {
        AuditOptions {
            on_full: match self.on_full {
                WhenFull::Refuse => OnFull::Refuse,
                WhenFull::DropAndCount => OnFull::DropAndCount,
            },
            retention: Duration::from_secs(u64::from(self.retention_days) * SECONDS_OF_A_DAY),
        }
    }
}
