//! Durable tasks: what a remote's long work may be, and what is decided about it (contract 6).
//!
//! Owns states, reading of answers, what is stored of them, schedules, and when somebody is told. Storing, calling and
//! telling are adapters'. Invariants: T1 (submission), T2 (status), T3 (event), T4 (lane), C1 and C2 (with
//! [`crate::holding`]).

pub mod agent_tools;
mod breaker;
pub mod cancel;
pub mod client_view;
pub mod event;
pub mod exposure;
mod form;
mod frozen;
mod id;
pub mod input;
mod json;
mod lane;
pub mod limits;
pub mod native;
pub mod parse;
mod pin;
pub mod poison;
pub mod poll_plan;
mod rendezvous;
mod rpc_error;
mod snapshot;
mod status;
pub mod submission;

pub use breaker::Breaker;
pub use event::{Event, Fingerprint};
pub use frozen::SnapshotFingerprint;
pub use id::TaskId;
pub use lane::{Duty, Lane, Shard};
pub use limits::{MissingTool, OutOfRange, TaskLimits};
pub use native::NativeTasks;
pub use pin::{LOST, Pin, Place};
pub use rendezvous::shards_of;
pub use rpc_error::RpcError;
pub use snapshot::{Artifact, Report, Snapshot};
pub use status::{OUTCOME_UNKNOWN, Status};
