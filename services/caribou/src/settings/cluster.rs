//! Settings of replicas that share a database (durability.md 2.2).

use caribou_core::holding::LeaseProfile;
use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Replicas that share a database. The same for all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Cluster {
    /// How soon the others take over from a replica that is gone.
    #[garde(skip)]
    pub profile: Profile,
}

/// How soon a replica counts as gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// After 30 s: failovers of most databases pass unnoticed.
    #[default]
    Safe,
    /// After 10 s: a database that is away for 8 s stops all work on tasks.
    Fast,
}

impl Cluster {
    /// What the runtime is told.
    pub fn leases(&self) -> LeaseProfile {
        match self.profile {
            Profile::Safe => LeaseProfile::SAFE,
            Profile::Fast => LeaseProfile::FAST,
        }
    }
}
