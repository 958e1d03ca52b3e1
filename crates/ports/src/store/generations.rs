//! The generations that everything is opened under, and which replica goes by which (durability.md §4; invariants G1,
//! G2).
//!
//! The truth of every reset. A count that begins has an origin that no count had before, so a store that lost its rows
//! never gives a generation out twice.

use caribou_core::ids::BootId;
use caribou_core::reset::{ResetGeneration, ResetScope};

use super::StoreError;
use crate::BoxFuture;

/// The generations.
pub trait Generations: Send + Sync + 'static {
    /// Puts the next generation of `scope` in force, and answers with it. Of two at once, each has its own.
    fn bump(&self, scope: ResetScope) -> BoxFuture<'_, Result<ResetGeneration, StoreError>>;

    /// How every scope stands that ever moved, as of one moment, at most [`caribou_core::reset::MAX_SCOPES`] servers.
    fn generations(&self) -> BoxFuture<'_, Result<Vec<(ResetScope, ResetGeneration)>, StoreError>>;

    /// Notes that a replica goes by this generation: nothing opened before serves a new call there.
    fn confirm(
        &self,
        boot: BootId,
        scope: ResetScope,
        generation: ResetGeneration,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The replicas whose lease holds, each with the last generation of `scope` that it noted; `None` = none yet.
    fn confirmed(&self, scope: ResetScope) -> BoxFuture<'_, Result<Vec<Confirmed>, StoreError>>;
}

/// A replica, and the last generation of a scope that it noted; `None` = none yet.
pub type Confirmed = (BootId, Option<ResetGeneration>);
