//! The machine that a replica runs on, as far as the lives of replicas depend on it: a clock that no suspend stops, a
//! guard that ends the children of whoever is not trusted any more, and proof that a life on the same machine is over
//! (durability.md 2.2, guard; 2.3).

use std::time::Duration;

use crate::BoxFuture;
use crate::store::Replica;

/// What this machine does for the lives of replicas.
pub trait Machine: Send + Sync + 'static {
    /// For how long the machine has been up, the time in which it was suspended counted.
    fn uptime(&self) -> Duration;

    /// Children of this replica may live, and be started, until the machine has been up for so long; then all of them
    /// are killed, also while this process stands still (invariant L1). A later call counts instead of an earlier one;
    /// until the first one there are no children. Must not block.
    fn trust_until(&self, uptime: Duration);

    /// Whether it is proved that nothing of this life is left, its children too. `false` = there is no proof, which says
    /// nothing: it may be gone all the same. What is left of a life whose processes were killed is killed by asking.
    fn is_gone(&self, replica: Replica) -> BoxFuture<'static, bool>;

    /// The end of this life, which was proved here, is on record: the proof is not needed any more.
    fn forget(&self, replica: &Replica);
}
