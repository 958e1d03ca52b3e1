//! Which replicas share the work.

use std::time::Duration;

use caribou_core::failure::Code;
use caribou_core::ids::BootId;
use caribou_ports::store::Replica;

use crate::Runtime;
use crate::caller::Caller;
use crate::error::VerbError;
use crate::membership::Peer;

/// One life of one replica that has not ended, as far as anybody knows.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaStatus {
    /// Which.
    pub boot: BootId,
    /// The name of its machine or pod.
    pub host: String,
    /// The version of Caribou.
    pub version: String,
    /// Where the others reach it; `None` = they do not.
    pub address: Option<String>,
    /// Whether it is the one that was asked.
    pub is_this: bool,
    /// Whether its lease holds.
    pub is_alive: bool,
    /// Whether it hands over what it has.
    pub is_draining: bool,
    /// The part of its sessions that is in use, 0 to 1.
    pub load: f32,
    /// Since it began.
    pub age: Duration,
}

impl Runtime {
    /// The replicas that share a store with this one, itself among them, the youngest first, as of a moment ago. A
    /// replica that shares nothing is the only one.
    ///
    /// # Errors
    /// `denied`: the caller is no admin. `unavailable`: the store has not been looked at yet.
    pub async fn replicas(&self, caller: &Caller) -> Result<Vec<ReplicaStatus>, VerbError> {
        caller.principal.administers()?;
        let Some(view) = self.peers() else { return Ok(vec![self.alone()]) };
        let Some(looked) = view.looked else {
            return Err(VerbError::new(Code::Unavailable, "the other replicas are not known yet; ask again"));
        };
        let status = |peer: &Peer| ReplicaStatus {
            is_this: peer.replica.boot == self.boot,
            is_alive: peer.is_alive,
            is_draining: peer.is_draining,
            load: peer.load,
            age: peer.age + looked.elapsed(),
            ..named(&peer.replica)
        };
        Ok(view.peers.iter().map(status).collect())
    }

    fn alone(&self) -> ReplicaStatus {
        let replica = Replica::alone(self.boot.clone(), "localhost", env!("CARGO_PKG_VERSION"));
        ReplicaStatus { is_this: true, is_alive: true, ..named(&replica) }
    }
}

fn named(replica: &Replica) -> ReplicaStatus {
    let Replica { boot, host, version, address, .. } = replica.clone();
    let (is_this, is_alive, is_draining, load, age) = (false, false, false, 0.0, Duration::ZERO);
    ReplicaStatus { boot, host, version, address, is_this, is_alive, is_draining, load, age }
}
