//! Which replicas there are and were: one row for each life of one, never used again.

use std::time::Duration;

use caribou_core::ids::BootId;

use super::StoreError;
use crate::BoxFuture;

/// The lives of replicas.
pub trait Replicas: Send + Sync + 'static {
    /// Records that this life began now, by the store's clock. A boot id is recorded once: beginning again changes
    /// nothing.
    fn begin(&self, replica: Replica) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Records that this life ended now. Final: nothing brings it back, and ending again changes nothing.
    fn end(&self, boot: BootId) -> BoxFuture<'_, Result<(), StoreError>>;

    /// All lives on record, the youngest first.
    fn list(&self) -> BoxFuture<'_, Result<Vec<StoredReplica>, StoreError>>;
}

/// One life of one replica, as it tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// New at each start; a UUID.
    pub boot: BootId,
    /// The name of its machine or pod, for people only: two replicas may share it.
    pub host: String,
    /// The version of Caribou.
    pub version: String,
}

/// One life of one replica, as it is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReplica {
    /// Who.
    pub replica: Replica,
    /// What is known of it.
    pub state: ReplicaState,
    /// How long ago it began, by the store's clock, so that no two machines' clocks are compared.
    pub age: Duration,
}

/// What is known of a replica. Numbers are those of the stored column; 2 will be *draining*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaState {
    /// It began and has not ended, as far as anybody knows.
    Up,
    /// It ended. Final.
    Dead,
}
