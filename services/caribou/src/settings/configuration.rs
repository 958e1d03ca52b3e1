//! Settings on where the document of servers is kept (architecture.md §2, configuration source).

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the document that names the MCP servers is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The truth, which the API changes. The same for all replicas of one deployment.
    #[garde(skip)]
    pub source: ConfigOrigin,
}

/// Where the document is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfigOrigin {
    /// In the file of `extensions_config_path`, which is followed and may be edited by hand.
    #[default]
    File,
    /// In the database, with its history. The file is read once: when the database has no document yet.
    Database,
}
