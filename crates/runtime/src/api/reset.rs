//! Forget everything that was opened or found so far.

use std::time::Duration;

use caribou_core::bounds;
use caribou_core::failure::Code;
use caribou_core::ids::BootId;
use caribou_core::reset::{RESET_CONFIRMED, ResetGeneration};
use tokio::sync::oneshot;
use tokio::time::{Instant, interval, timeout_at};

use crate::Runtime;
use crate::audit::Entry;
use crate::caller::Caller;
use crate::config::{ConfigurationMessage, StaleConfig};
use crate::error::VerbError;
use crate::reset::Seen;

/// Between two looks at who has done it: most have within a few milliseconds.
const CONFIRMATIONS: Duration = Duration::from_millis(50);

/// How far a reset is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only this replica.
    Process,
    /// Everybody who follows the same configuration file, before their next look-up.
    Directory,
    /// Every replica of the cluster.
    Cluster,
}

impl Reach {
    /// The word shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Directory => "directory",
            Self::Cluster => "cluster",
        }
    }
}

/// A reset that was made.
#[derive(Clone, Debug)]
pub struct ResetDone {
    /// How far it is heard.
    pub reach: Reach,
    /// Replicas that have done it.
    pub confirmed: Vec<BootId>,
    /// Replicas that were told and have not said so yet.
    pub unconfirmed: Vec<BootId>,
}

impl Runtime {
    /// Closes every session and forgets every tool list; the next look-up finds all anew (contract 5.7). When it
    /// returns, nothing opened before serves a new call (invariant G1). What is stored is read anew, so a reference
    /// such as `$TOKEN` means what it means then.
    ///
    /// # Errors
    /// The caller is no admin; or there is no configuration to follow, or it takes longer than a few seconds; or it cannot
    /// be put on record for the other replicas: then nothing is reset.
    pub async fn reset(&self, caller: &Caller) -> Result<ResetDone, VerbError> {
        self.audit.around(Entry::new("reset", caller), self.reset_for(caller)).await
    }

    async fn reset_for(&self, caller: &Caller) -> Result<ResetDone, VerbError> {
        caller.principal.administers()?;
        let desk = self.desk()?;
        let moved = match &desk.seen {
            Some(seen) => Some(seen.bump().await?),
            None => None,
        };
        let (done, reset) = oneshot::channel();
        let _ = desk.role.cast(ConfigurationMessage::Reset { moved, done });
        let Ok(Ok(published)) = tokio::time::timeout(bounds::SESSION_CLOSE * 2, reset).await else {
            return Err(VerbError::new(Code::Timeout, "the reset was begun, but is not done yet"));
        };
        if let Some((seen, moved)) = desk.seen.as_ref().zip(moved) {
            return Ok(self.confirmed(seen, moved).await);
        }
        let reach = if published { Reach::Directory } else { Reach::Process };
        Ok(ResetDone { reach, confirmed: vec![self.boot.clone()], unconfirmed: Vec::new() })
    }

    /// Waits a while for the other replicas to say that they have done it.
    async fn confirmed(&self, seen: &Seen, moved: ResetGeneration) -> ResetDone {
        let until = Instant::now() + RESET_CONFIRMED;
        let (mut confirmed, mut unconfirmed) = (vec![self.boot.clone()], Vec::new());
        let mut looks = interval(CONFIRMATIONS);
        loop {
            looks.tick().await;
            // A store that is away is asked again: others may still say so.
            if let Ok(Some(replicas)) = timeout_at(until, seen.confirmations()).await {
                let others = replicas.into_iter().filter(|(boot, _)| *boot != self.boot);
                let is_done = |at: Option<ResetGeneration>| at.is_some_and(|at| at.includes(moved));
                let (done, not_yet): (Vec<_>, Vec<_>) = others.partition(|(_, at)| is_done(*at));
                let names = |replicas: Vec<(BootId, _)>| replicas.into_iter().map(|(boot, _)| boot);
                confirmed.truncate(1);
                confirmed.extend(names(done));
                unconfirmed = names(not_yet).collect();
                if unconfirmed.is_empty() {
                    break;
                }
            }
            if Instant::now() >= until {
                break;
            }
        }
        ResetDone { reach: Reach::Cluster, confirmed, unconfirmed }
    }

    /// Another replica says that something was reset or changed: the store is looked at now.
    pub(crate) fn look_at_generations(&self) {
        if let Some(seen) = self.configuration.as_ref().and_then(|desk| desk.seen.as_ref()) {
            seen.nudged();
        }
    }

    /// Why what is stored is not in force, if it is not: the last good configuration is (contract 5.4).
    pub fn stale_config(&self) -> Option<StaleConfig> {
        self.configuration.as_ref().and_then(|configuration| configuration.stale.get())
    }
}
