//! What a replica reaches the world by: one member for each need, most of which it can do without.

use std::sync::Arc;

use caribou_core::credentials::CredentialKey;
use caribou_core::ids::VolumeId;
use caribou_core::launch::Allowlist;
use caribou_ports::event_sink::EventSink;
use caribou_ports::identity::Authenticator;
use caribou_ports::interceptor::Interceptors;
use caribou_ports::machine::Machine;
use caribou_ports::mcp::Connector;
use caribou_ports::peers::Peers;
use caribou_ports::reset_signal::ResetSignal;
use caribou_ports::store::{Audit, ClusterStore, Connections, Generations, Promotions, TaskStore};
use caribou_ports::task_driver::TaskDriver;
use caribou_ports::token_endpoint::TokenEndpoint;
use caribou_ports::vault::Vault;
use caribou_ports::workspace::ThreadFolders;

use crate::config::Configuration;
use crate::oauth::StoredChains;

/// What a replica reaches the world by.
#[derive(Clone)]
pub struct Outside {
    /// Opens sessions with servers.
    pub connector: Arc<dyn Connector>,
    /// The folders that children of a thread work in; `None` = they inherit our working directory.
    pub folders: Option<Arc<dyn ThreadFolders>>,
    /// Where the servers are configured, to follow it and to change it; `None` = they stay as they are given.
    pub configuration: Option<Configuration>,
    /// Keeps what threads have promoted; `None` = this process does, for as long as it lives.
    pub promotions: Option<Arc<dyn Promotions>>,
    /// Tells callers apart; `None` = it is not asked who they are, and all may everything.
    pub authenticator: Option<Arc<dyn Authenticator>>,
    /// Asks token endpoints; `None` = servers with OAuth are refused.
    pub token_endpoint: Option<Arc<dyn TokenEndpoint>>,
    /// Where chains of refresh tokens are kept, for all replicas; `None` = this process keeps them, for as long as it
    /// lives.
    pub oauth_chains: Option<StoredChains>,
    /// Makes the interceptors of `mcpInterceptors`; `None` = servers are refused while there are any.
    pub interceptors: Option<Arc<dyn Interceptors>>,
    /// Where calls are put on record; `None` = nowhere.
    pub audit: Option<Arc<dyn Audit>>,
    /// What users bring for themselves; `None` = nobody can.
    pub personal: Option<Personal>,
    /// What tasks are followed by; `None` = there are none.
    pub tasks: Option<DurableTasks>,
    /// What this replica shares with others; `None` = it is alone.
    pub cluster: Option<Cluster>,
    /// What this machine does for the lives of replicas; `None` = children end with this process, and no sooner.
    pub machine: Option<Arc<dyn Machine>>,
}

/// What a replica shares with the others of its cluster.
#[derive(Clone)]
pub struct Cluster {
    /// Where it is on record which of them holds which session.
    pub store: Arc<dyn ClusterStore>,
    /// The way to them.
    pub peers: Arc<dyn Peers>,
    /// Tells the credentials of requests apart; the same on every replica.
    pub credentials: CredentialKey,
    /// What seals what sessions with remote servers can be gone on with by their next owner; `None` = each owner opens its
    /// own.
    pub vault: Option<Arc<dyn Vault>>,
    /// The volume that the files of threads are on in this replica; `None` = all replicas share one.
    pub volume: Option<VolumeId>,
}

/// Where it is on record under which generation everything is opened, and what tells of it sooner.
#[derive(Clone)]
pub struct Resets {
    /// The record.
    pub store: Arc<dyn Generations>,
    /// What tells of it; `None` = the record is read every second.
    pub signal: Option<Arc<dyn ResetSignal>>,
}

/// Where tasks are kept, who speaks to servers about them, and who is told.
#[derive(Clone)]
pub struct DurableTasks {
    /// The store.
    pub store: Arc<dyn TaskStore>,
    /// The drivers, each under its own name.
    pub drivers: Vec<Arc<dyn TaskDriver>>,
    /// Where events that ask for attention go.
    pub sinks: Vec<Arc<dyn EventSink>>,
    /// Whether they go to whoever watches, too ([`crate::Runtime::watch_tasks`]).
    pub is_watched: bool,
}

/// Where personal connections are kept, and what encrypts them.
#[derive(Clone)]
pub struct Personal {
    /// The store.
    pub connections: Arc<dyn Connections>,
    /// The cipher.
    pub vault: Arc<dyn Vault>,
    /// How many one user may have.
    pub max_per_user: u32,
    /// Which programs users may start; `None` = only remote servers are theirs to bring.
    pub stdio: Option<Allowlist>,
}

impl<C: Connector> From<Arc<C>> for Outside {
    /// Only a connector, for programs that embed the runtime.
    fn from(connector: Arc<C>) -> Self {
        Self {
            connector,
            folders: None,
            configuration: None,
            promotions: None,
            authenticator: None,
            token_endpoint: None,
            oauth_chains: None,
            interceptors: None,
            audit: None,
            personal: None,
            tasks: None,
            cluster: None,
            machine: None,
        }
    }
}
