//! Settings of the end of a replica (durability.md 2.2, drain).

use std::time::Duration;

use caribou_core::bounds;
use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a replica ends when it is asked to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Shutdown {
    /// How long a replica that shares its sessions with others may hand them over, before it closes its doors; calls
    /// are answered meanwhile. At most as long as calls keep sessions in use: one without sessions ends at once, and so
    /// does one that is alone. Whatever ends processes (`terminationGracePeriodSeconds` of a pod, `TimeoutStopSec` of a
    /// unit) must wait for 30 seconds longer than this before it kills.
    #[garde(range(min = 0.0, max = 3_600.0))]
    pub drain_seconds: f64,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { drain_seconds: bounds::DRAIN.as_secs_f64() }
    }
}

impl Shutdown {
    /// How long sessions may be handed over.
    pub fn drain(&self) -> Duration {
        Duration::from_secs_f64(self.drain_seconds)
    }
}
