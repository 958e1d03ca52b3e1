//! Caribou's actors and its public verbs.
//!
//! Owns who talks to which upstream session and when; does not speak MCP, HTTP or SQL: those stand behind the traits
//! of `caribou-ports`. Embed it in a Rust agent by handing [`Runtime::start`] a connector; `examples/embed.rs` shows
//! the whole of it.

mod api;
mod audit;
mod call;
mod caller;
mod catalog;
mod chance;
mod config;
mod error;
mod exchange;
mod following;
mod gate;
mod interception;
mod membership;
mod metrics;
mod notifier;
mod oauth;
mod options;
mod outside;
mod personal;
mod poller;
mod promotions;
mod reset;
mod roles;
mod session;
mod shape;
mod start;
mod survived;
mod tasks;
mod wakeups;
mod watch;

pub use api::call_tool::{CallTool, CalledTool, MadeTask, SessionSeen};
pub use api::change_config::{ConfigChange, ConfigView};
pub use api::client_tasks::{ClientTask, TaskReach};
pub use api::client_words::ClientEars;
pub use api::follow_task::FollowedTask;
pub use api::from_peer::{ExchangeRefused, OpenedForPeer};
pub use api::list_changes::{Changed, ListChanges};
pub use api::list_tools::{ListedTool, ListedTools};
pub use api::merged::{AmongOthers, ListMerged, MergedList, MergedPage};
pub use api::oauth_chains::ChainView;
pub use api::one_server::ServerOffer;
pub use api::pass_request::PassRequest;
pub use api::promote_tools::PromotedTools;
pub use api::replicas::ReplicaStatus;
pub use api::reset::{Reach, ResetDone};
pub use api::search_tools::FoundTools;
pub use api::status::{ServerState, ServerStatus, SessionStatus};
pub use api::told_tasks::ToldTasks;
pub use api::watch_resources::WatchResources;
pub use audit::{AuditOptions, OnFull, wall_clock_ms};
pub use caller::{Caller, Door, RequestSecrets};
pub use caribou_ports::event_sink::{Launched, Run};
pub use caribou_ports::identity::Unauthenticated;
pub use caribou_ports::mcp::{Progress, ProgressSink};
pub use caribou_ports::peers::{ClientSays, ClientWord};
pub use caribou_ports::store::{
    AuditFilter, AuditRow, PageKey, RevisionHead, StoredAuditRow, StoredEvent, StoredTask, TaskFilter,
};
pub use config::{Configuration, StaleConfig, StoredConfig};
pub use error::{UpstreamError, VerbError};
pub use exchange::RunningExchange;
pub use gate::NotAdmitted;
pub use membership::{Peer, PeerView};
pub use oauth::{ChainTimes, StoredChains};
pub use options::Options;
pub use outside::{Cluster, DurableTasks, Outside, Personal, Resets};
pub use personal::{ConnectionView, ConnectionsView};
pub use shape::Shape;
pub use start::Runtime;
pub use watch::{TaskAnswers, TaskWatch, WatchAnswer, WatchedEvent};
