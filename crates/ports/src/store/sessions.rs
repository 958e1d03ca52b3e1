//! Which replica holds which session: one row for each session key, for ever, so that an epoch only grows (durability.md
//! 2.2; invariants L1, L2).
//!
//! A session is taken from another replica only when that one's life is on record as ended, long enough ago. Nothing
//! here is asked for each call: once when a session is opened, and once for its first answer.

use std::time::Duration;

use caribou_core::ids::{BootId, Epoch, SessionKey};
use caribou_core::session::{Ownership, SessionRow};

use super::StoreError;
use crate::BoxFuture;

/// Who holds what.
pub trait Sessions: Send + Sync + 'static {
    /// Who holds the session; `None` = nobody ever has.
    fn find_session(&self, session: SessionRow) -> BoxFuture<'_, Result<Option<Ownership>, StoreError>>;

    /// Takes a session that nobody holds, or whose owner ended at least `gap` ago, under the next epoch. One's own is
    /// taken again, under the next epoch too: whoever asks has no child for the one before.
    fn take_session(&self, taking: TakeSession, gap: Duration) -> BoxFuture<'_, Result<Taken, StoreError>>;

    /// Gives a session back, if it is still held by `owner` at `epoch`. Nothing of it may be left: the next owner may
    /// begin at once. Whether it was.
    fn free_session(&self, session: SessionRow, owner: BootId, epoch: Epoch)
    -> BoxFuture<'_, Result<bool, StoreError>>;

    /// As [`Self::free_session`], but whoever takes it next may go on with what was kept of it.
    fn leave_session(
        &self,
        session: SessionRow,
        owner: BootId,
        epoch: Epoch,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Keeps, sealed, what the session can be gone on with by its next owner, if it is still held by `owner` at `epoch`.
    /// It is gone as soon as the session is taken again, or given back as one of which nothing is left. Whether it is
    /// kept.
    fn keep_resumption(
        &self,
        session: SessionRow,
        owner: BootId,
        epoch: Epoch,
        sealed: Vec<u8>,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// What was kept; `None` = nothing.
    fn find_resumption(&self, session: SessionRow) -> BoxFuture<'_, Result<Option<Resumption>, StoreError>>;

    /// Notes that the thread was answered at `epoch`; the epoch of its answer before, if there was one.
    fn told_epoch(&self, session: SessionRow, epoch: Epoch) -> BoxFuture<'_, Result<Option<Epoch>, StoreError>>;

    /// The sessions that are held, those used last first, at most `limit`; of one replica if named.
    fn list_sessions(&self, owner: Option<BootId>, limit: u32)
    -> BoxFuture<'_, Result<Vec<StoredSession>, StoreError>>;
}

/// Who takes which session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeSession {
    /// The row.
    pub session: SessionRow,
    /// What the row is of, for people.
    pub key: SessionKey,
    /// Who takes it.
    pub owner: BootId,
}

/// What became of taking one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is ours at this epoch.
    Taken(Epoch),
    /// Somebody else was faster, or its owner lives: it stays as it is.
    Held(Ownership),
}

/// What a session can be gone on with by its next owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumption {
    /// At which epoch it was kept.
    pub epoch: Epoch,
    /// It, sealed.
    pub sealed: Vec<u8>,
}

/// A session that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// Of which server, user and thread.
    pub key: SessionKey,
    /// Who holds it.
    pub owner: BootId,
    /// At which epoch.
    pub epoch: Epoch,
    /// How long ago it was taken, by the store's clock.
    pub age: Duration,
}
