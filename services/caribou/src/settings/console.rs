//! Settings of the web console.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The web console, at `/console` on the address of REST.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Console {
    /// Whether it is served. Its pages hold nothing themselves; what they show is read over REST, with the credential of
    /// whoever looks.
    #[garde(skip)]
    pub enabled: bool,
}

impl Default for Console {
    fn default() -> Self {
        Self { enabled: true }
    }
}
