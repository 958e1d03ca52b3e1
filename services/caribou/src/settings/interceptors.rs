//! Settings on `mcpInterceptors` (architecture.md §10).

use caribou_core::config::UnsupportedInterceptors;
use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Interceptors around tool calls, which `mcpInterceptors` of the servers' file lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Interceptors {
    /// What is done about entries that are Python paths (`module:variable`), which Caribou cannot run.
    #[garde(skip)]
    pub unsupported: Unsupported,
}

/// What is done about an entry that Caribou cannot run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unsupported {
    /// Caribou does not start with it; an edit that brings it in is not put in force.
    #[default]
    Refuse,
    /// It is warned about and left out.
    Skip,
}

impl From<Unsupported> for UnsupportedInterceptors {
    fn from(unsupported: Unsupported) -> Self {
        match unsupported {
            Unsupported::Refuse => Self::Refuse,
            Unsupported::Skip => Self::Skip,
        }
    }
}
