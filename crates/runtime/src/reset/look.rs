//! Reads the store, and says whether this replica is in touch with it.

use std::time::Duration;

use caribou_core::bounds;
use caribou_core::failure::{Class, Code};
use caribou_core::ids::BootId;
use caribou_core::reset::{CATCH_UP, LOOK, LOOK_BESIDE_SIGNAL, MAX_STALE, ResetGeneration, ResetScope};
use caribou_ports::store::StoreError;
use tokio::time::{Instant, timeout};

use super::Seen;
use crate::error::VerbError;

/// A row for each scope is read within milliseconds; a store that needs longer is away.
const READ_AT_MOST: Duration = Duration::from_secs(2);

/// Beyond this without a reading, or without a beat of the timer, this replica may have slept through a reset.
const IN_TOUCH: Duration = Duration::from_millis(1_500);

impl Seen {
    /// Reads how everything stands before anything is opened.
    ///
    /// # Errors
    /// The store does not tell.
    pub(crate) async fn begin(&self) -> Result<(), VerbError> {
        let began = Instant::now();
        let stored = timeout(READ_AT_MOST * 5, self.0.resets.store.generations()).await;
        let failed = |why: String| {
            VerbError::new(Code::Unavailable, format!("it cannot be read under which generations to begin: {why}"))
        };
        let stored = stored.map_err(|_| failed("no answer in time".to_owned()))?;
        self.read(stored.map_err(|error| failed(error.to_string()))?, began);
        self.begun();
        self.confirm();
        Ok(())
    }

    /// Reads the store, unless that was done since this was asked for. Whether it is read.
    pub(crate) async fn look(&self) -> bool {
        let asked = Instant::now();
        let _turn = self.0.turn.lock().await;
        if self.state().read > asked {
            return true;
        }
        // Twice at most: what was heard during the second reading is as new as that.
        for _ in 0..2 {
            let began = Instant::now();
            match timeout(READ_AT_MOST, self.0.resets.store.generations()).await {
                Ok(Ok(stored)) => {
                    if !self.read(stored, began) {
                        return true;
                    }
                }
                failed => {
                    let why = failed.map_or_else(
                        |_| "no answer in time".to_owned(),
                        |failed| failed.err().map(|error| error.to_string()).unwrap_or_default(),
                    );
                    let mut state = self.state();
                    if state.failed.replace(Instant::now()).is_none() {
                        tracing::warn!("the generations cannot be read: {why}; what is open is served on for a while");
                    }
                    return false;
                }
            }
        }
        true
    }

    /// When the store is to be read again, by the timer.
    pub(super) fn look_due(&self) -> Instant {
        let state = self.state();
        let last = state.failed.map_or(state.read, |failed| failed.max(state.read));
        last + if state.is_signal_alive(Instant::now()) { LOOK_BESIDE_SIGNAL } else { LOOK }
    }

    /// Resolves when what is looked up next may be served: at once while the store was read a moment ago or a subscription
    /// hears everything. A replica that was frozen reads first. While the store is away, what is open is served on.
    ///
    /// # Errors
    /// `unavailable` once the store has been away for longer than anybody may rely on what is open.
    pub(crate) async fn in_touch(&self) -> Result<(), VerbError> {
        if self.is_in_touch() {
            return Ok(());
        }
        let is_away = self.state().failed.is_some_and(|failed| failed.elapsed() < LOOK);
        if !is_away && timeout(CATCH_UP, self.look()).await.is_err() {
            // Nobody else waits for it in the next while.
            self.state().failed = Some(Instant::now());
        }
        let silent = self.state().read.elapsed();
        if silent <= MAX_STALE {
            return Ok(());
        }
        let detail = format!(
            "the database has not been reached for {} s, so nobody knows whether the configuration still holds; nothing is \
             looked up until it is",
            silent.as_secs()
        );
        Err(VerbError { retry_after: Some(LOOK), ..VerbError::new(Code::Unavailable, detail) })
    }

    fn is_in_touch(&self) -> bool {
        let state = self.state();
        let now = Instant::now();
        let is_recent = |then: Instant| now.saturating_duration_since(then) <= IN_TOUCH;
        is_recent(state.beat) && (is_recent(state.read) || state.is_signal_alive(now))
    }

    /// Puts on record by which generation of everything this replica goes, so that whoever reset it hears of it. Nobody
    /// waits for that here.
    pub(crate) fn confirm(&self) {
        let Some(generation) = self.applied_globally() else { return };
        let seen = self.clone();
        tokio::spawn(async move {
            let noting = seen.0.resets.store.confirm(seen.0.boot.clone(), ResetScope::Global, generation);
            match timeout(READ_AT_MOST, noting).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!("a reset that is done here is not on record: {error}"),
                Err(_) => tracing::debug!("a reset that is done here is not on record: no answer in time"),
            }
        });
    }

    /// Puts the next generation of everything in force, and has the others told.
    ///
    /// # Errors
    /// `unavailable`: it is not on record, so nothing is reset; `outcome_unknown`: it may be.
    pub(crate) async fn bump(&self) -> Result<ResetGeneration, VerbError> {
        let bumped = timeout(bounds::STORE_REQUEST, self.0.resets.store.bump(ResetScope::Global)).await;
        let bumped = bumped.unwrap_or_else(|_| Err(StoreError::OutcomeUnknown("no answer in time".to_owned())));
        let generation = bumped.map_err(|error| {
            let code = if error.class() == Class::Unknown { Code::OutcomeUnknown } else { Code::Unavailable };
            VerbError::new(code, format!("the reset is not put on record for all replicas: {error}"))
        })?;
        self.state().ours = Some(generation);
        self.tell(&[(ResetScope::Global, generation)]);
        Ok(generation)
    }

    /// Which replicas live, and by which generation of everything each goes; `None` = the store does not tell.
    pub(crate) async fn confirmations(&self) -> Option<Vec<(BootId, Option<ResetGeneration>)>> {
        self.0.resets.store.confirmed(ResetScope::Global).await.ok()
    }

    fn applied_globally(&self) -> Option<ResetGeneration> {
        self.state().applied_to(&ResetScope::Global)
    }
}
