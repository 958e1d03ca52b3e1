//! How the audit log is kept, with the defaults of `core/bounds`.

use std::time::Duration;

use caribou_core::bounds;

/// How the audit log is kept.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    /// What becomes of work whose row has no place.
    pub on_full: OnFull,
    /// Rows are deleted when they have been stored this long.
    pub retention: Duration,
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self { on_full: OnFull::Refuse, retention: bounds::AUDIT_RETENTION }
    }
}

/// What becomes of work whose row has no place, because the store has been away too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// It is refused as unavailable, before anything is done: what is done is on record.
    #[default]
    Refuse,
    /// It is done without a row, which is counted.
    DropAndCount,
}
