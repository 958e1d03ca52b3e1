//! Lives of replicas, on record.

use std::sync::PoisonError;
use std::time::Instant;

use caribou_core::ids::BootId;
use caribou_ports::BoxFuture;
use caribou_ports::store::{Replica, ReplicaState, Replicas, StoreError, StoredReplica};

use super::Memory;

/// One life.
#[derive(Debug)]
pub(super) struct Life {
    replica: Replica,
    began: Instant,
    state: ReplicaState,
}

impl Replicas for Memory {
    fn begin(&self, replica: Replica) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut lives = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        if lives.iter().all(|life| life.replica.boot != replica.boot) {
            lives.push(Life { replica, began: Instant::now(), state: ReplicaState::Up });
        }
        Box::pin(async { Ok(()) })
    }

    fn end(&self, boot: BootId) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut lives = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        for life in lives.iter_mut().filter(|life| life.replica.boot == boot) {
            life.state = ReplicaState::Dead;
        }
        Box::pin(async { Ok(()) })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<StoredReplica>, StoreError>> {
        let lives = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        let stored =
            |life: &Life| StoredReplica { replica: life.replica.clone(), state: life.state, age: life.began.elapsed() };
        let listed = lives.iter().rev().map(stored).collect();
        Box::pin(async { Ok(listed) })
    }
}
