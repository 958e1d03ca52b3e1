//! Settings of replicas that share a database (durability.md 2.2).

use std::net::SocketAddr;

use caribou_core::holding::LeaseProfile;
use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::notify::Hidden;
use super::peers::{self, PeerSecret, PeerTls};

/// Replicas that share a database. The same for all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Cluster {
    /// How soon the others take over from a replica that is gone.
    #[garde(skip)]
    pub profile: Profile,
    /// Address and port that the other replicas reach this one by; port 0 takes a free one. When absent: sessions are
    /// not shared. Needs PostgreSQL, and `secret` or `tls`.
    #[garde(skip)]
    #[schemars(with = "Option<String>")]
    pub listen: Option<SocketAddr>,
    /// Host and port at which the others reach it. When absent: what `listen` names.
    #[garde(inner(custom(peers::address)))]
    pub advertise: Option<String>,
    /// What replicas know one another by, 32 characters or more; the same for all of them. Never printed.
    #[garde(skip)]
    pub secret: Option<Hidden<PeerSecret>>,
    /// Whether the secret and all calls may go unencrypted over a network that others could read. Not needed on this
    /// machine alone.
    #[garde(skip)]
    pub allow_plaintext: bool,
    /// Certificates that replicas show one another.
    #[garde(dive)]
    pub tls: PeerTls,
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
