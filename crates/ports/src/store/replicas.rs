//! Which replicas there are and were: one row for each life of one, never used again; and the one lease of each life
//! (durability.md 2.2).
//!
//! The lease is judged by the store's clock. A peer declares a life dead only after it has itself seen the number of
//! renewals stand still for a whole lease, by its own clock: so no clock that jumps can kill a life that renews.

use std::time::Duration;

use caribou_core::ids::BootId;
use caribou_core::task::SnapshotFingerprint;

use super::StoreError;
use crate::BoxFuture;

/// The lives of replicas.
pub trait Replicas: Send + Sync + 'static {
    /// Records that this life began now, by the store's clock, with a lease that is over. A boot id is recorded once:
    /// beginning again changes nothing.
    fn begin(&self, replica: Replica) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Holds the lease for another while from now on. A late renewal is one as long as nobody has declared the life
    /// dead.
    fn renew_lease(&self, renewal: Renewal) -> BoxFuture<'_, Result<Renewed, StoreError>>;

    /// Declares a life dead whose lease is over and that has not renewed since `seen_renewals`. Final. Whether it is
    /// dead now by this call.
    fn declare_dead(&self, boot: BootId, seen_renewals: i64) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Records that this life ended now. Final: nothing brings it back, and ending again changes nothing.
    fn end(&self, boot: BootId) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The lives that have not ended, as far as anybody knows, the youngest first.
    fn list(&self) -> BoxFuture<'_, Result<Vec<StoredReplica>, StoreError>>;

    /// Deletes the record of lives that ended longer ago than `age`: at most [`super::FORGET_BATCH`]. How many.
    fn forget_replicas(&self, age: Duration) -> BoxFuture<'_, Result<u64, StoreError>>;
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

/// What a life tells with each renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// Who.
    pub boot: BootId,
    /// How long the lease holds.
    pub lease: Duration,
    /// The configurations of task servers it was started with.
    pub configurations: Vec<SnapshotFingerprint>,
}

/// What a renewal did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// The lease holds. The renewals so far, this one counted; fewer than before means that the store lost some.
    Renewed {
        /// How many.
        renewals: i64,
    },
    /// This life was declared dead, or never began: it must stop acting.
    Dead,
}

/// One life of one replica that has not ended, as it is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReplica {
    /// Who.
    pub replica: Replica,
    /// How long ago it began, by the store's clock, so that no two machines' clocks are compared.
    pub age: Duration,
    /// The renewals so far: a peer watches them move.
    pub renewals: i64,
    /// What is left of its lease, by the store's clock; zero = it is over.
    pub lease_left: Duration,
    /// The configurations of task servers it was started with.
    pub configurations: Vec<SnapshotFingerprint>,
}
