//! What outlives a process: one trait for each thing that is stored.
//!
//! Three implementations mean the same: PostgreSQL, SQLite and memory. Methods are intentions, and each is one commit.
//! What a competitor can cause is an answer; an error means that the store could not be asked.

mod api_keys;
mod audit;
mod client_sessions;
mod config_revisions;
mod connections;
mod error;
mod generations;
mod notifications;
mod oauth_chains;
mod promotions;
mod replicas;
mod sessions;
mod task_rows;
mod task_store;
mod tasks;
mod thread_volumes;
mod wakeups;

pub use api_keys::{ApiKey, ApiKeys, StoredApiKey};
pub use audit::{Audit, AuditFilter, AuditRow, Party, StoredAuditRow};
pub use client_sessions::{ClientSession, ClientSessions};
pub use config_revisions::{ConfigRevisions, NextRevision, Revise, Revised, Revising, RevisionHead, StoredRevision};
pub use connections::{Connections, Expected, Put, StoredConnection};
pub use error::StoreError;
pub use generations::{Confirmed, Generations};
pub use notifications::{
    ClaimDeliveries, ClaimedDelivery, DeadLetter, DeliveryClaim, Notifications, Redelivered, Reserved, StoredEvent,
};
pub use oauth_chains::{
    BeginRefresh, ChainLease, FailedRefresh, GrantId, OAuthChains, SealedTokens, Standing, StartChain, StoredChain,
    Successor, TokenColumn, Verdict,
};
pub use promotions::Promotions;
pub use replicas::{Renewal, Renewed, Replica, Replicas, StoredReplica};
pub use sessions::{Resumption, Sessions, StoredSession, TakeSession, Taken};
pub use task_rows::{PageKey, StoredTask, TaskFilter};
pub use task_store::{ClusterStore, TaskStore};
pub use tasks::{
    AnswerStored, AttemptFailed, BroughtAnswer, CancelRequested, Change, ClaimTasks, ClaimedTask, FORGET_BATCH, Handle,
    MAX_CLAIMED, NewAnswer, Noted, Recorded, Settled, SubmitKey, TaskClaim, TaskIntent, Tasks, Unchanged,
};
pub use thread_volumes::{ThreadVolume, ThreadVolumes};
pub use wakeups::{Listening, Wake, Wakeups};
