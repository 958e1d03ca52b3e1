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

    /// Declares a life dead of which somebody has proof that nothing is left, whatever its lease says: what it held may
    /// be taken at once, without the gap. Final. Whether it is dead now by this call.
    fn declare_gone(&self, boot: BootId) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Records that this life takes nothing new, and hands over what it has. It goes on renewing. Draining again, or
    /// after the end, changes nothing.
    fn drain(&self, boot: BootId) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Records that this life ended and left nothing, so that what it held may be taken at once, without the gap. Final:
    /// nothing brings it back, and ending again changes nothing.
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
    /// Where the others reach it, `host:port`; `None` = it forwards nothing and is forwarded nothing.
    pub address: Option<String>,
    /// Names the machine, for those of the same machine: they may try [`Self::lock_path`]. Two containers share one only
    /// when they share files and processes.
    pub host_id: Option<String>,
    /// A file on that machine that is locked for as long as anything of this life is left, its children too: whoever
    /// gets the lock has proof that nothing is.
    pub lock_path: Option<String>,
}

impl Replica {
    /// One that others do not reach.
    pub fn alone(boot: BootId, host: &str, version: &str) -> Self {
        let (host, version) = (host.to_owned(), version.to_owned());
        Self { boot, host, version, address: None, host_id: None, lock_path: None }
    }
}

/// What a life tells with each renewal.
#[derive(Clone, Debug, PartialEq)]
pub struct Renewal {
    /// Who.
    pub boot: BootId,
    /// How long the lease holds.
    pub lease: Duration,
    /// The configurations of task servers it was started with.
    pub configurations: Vec<SnapshotFingerprint>,
    /// The part of its sessions that is in use, 0 to 1.
    pub load: f32,
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
#[derive(Clone, Debug, PartialEq)]
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
    /// Whether it hands over what it has.
    pub is_draining: bool,
    /// The part of its sessions that is in use, 0 to 1.
    pub load: f32,
}
