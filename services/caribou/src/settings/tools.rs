//! Settings on which tools models see and which may be called (contract 9.3, architecture.md §10).

use caribou_core::guardrails::{self, Unusable};
use caribou_core::tool;
use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Deferred tools: models see their names and fetch the schemas of those they need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct ToolSearch {
    /// Whether tools are deferred. A call of one that was not fetched is refused.
    #[garde(skip)]
    pub enabled: bool,
    /// The most tools that one message of a user fetches by its own words, from 1 to 5; a number outside counts as
    /// the nearest.
    #[garde(skip)]
    pub auto_promote_top_k: i64,
}

/// Which tools may be called at all, whoever asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Guardrails {
    /// Whether calls are judged.
    #[garde(skip)]
    pub enabled: bool,
    /// Whether every call is denied when the provider cannot be used; otherwise none is.
    #[garde(skip)]
    pub fail_closed: bool,
    /// Who judges.
    #[garde(dive)]
    pub provider: GuardrailProvider,
}

/// Who judges calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct GuardrailProvider {
    /// The provider: `allowlist`, also known as `deerflow.guardrails.builtin:AllowlistProvider`.
    #[garde(skip)]
    #[serde(rename = "use")]
    pub name: Option<String>,
    /// What the provider goes by.
    #[garde(dive)]
    pub config: GuardrailLists,
}

/// Lists of tools, by the names they are called by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct GuardrailLists {
    /// Only these may be called. When absent: all; when empty: none. As one environment variable: names separated by
    /// commas.
    #[garde(inner(inner(length(min = 1))))]
    pub allowed_tools: Option<Vec<String>>,
    /// These may not be called, even when they are allowed. As one environment variable: names separated by commas.
    #[garde(inner(length(min = 1)))]
    pub denied_tools: Vec<String>,
}

impl Default for ToolSearch {
    fn default() -> Self {
        Self { enabled: false, auto_promote_top_k: tool::AUTO_PROMOTE_TOP_K as i64 }
    }
}

impl Default for Guardrails {
    fn default() -> Self {
        Self { enabled: false, fail_closed: true, provider: GuardrailProvider::default() }
    }
}

impl Guardrails {
    /// The rule, and why it cannot be used as it is written, if so.
    pub fn rule(&self) -> (guardrails::Guardrails, Option<Unusable>) {
        guardrails::Guardrails::of(guardrails::Written {
            enabled: self.enabled,
            fail_closed: self.fail_closed,
            provider: self.provider.name.clone(),
            allowed_tools: self.provider.config.allowed_tools.clone(),
            denied_tools: self.provider.config.denied_tools.clone(),
        })
    }
}
