//! Sessions that remote servers keep for whoever knows their id: what one owner leaves, the next one goes on with.
//!
//! What is kept stands sealed in the row of the session, under its epoch, with what it was opened under: a session of
//! another configuration or before a reset is not gone on with (invariant G1). Whatever fails here costs a session that
//! is opened anew, as if nothing had been kept.

use std::fmt::Write as _;
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::config::{Secret, endpoint_fingerprint};
use caribou_core::ids::Epoch;
use caribou_core::session::SessionRow;
use caribou_ports::mcp::Session;
use caribou_ports::vault::{Place, Vault};
use tokio::time::timeout;

use super::handle::Handle;
use super::home::{Homes, Shared};

impl Homes {
    /// What the session of `handle` can be gone on with, if its last owner left anything that still counts.
    pub(super) async fn resumable(&self, handle: &Handle) -> Option<Secret> {
        let (shared, vault) = self.keeping(handle)?;
        let row = SessionRow::of(&handle.key);
        let found = asked(shared.store.find_resumption(row)).await??;
        let opened = vault.open(&place(row, found.epoch), &found.sealed).inspect_err(|why| {
            tracing::debug!(session = %handle.key, "what was kept of a session cannot be read: {why}");
        });
        let opened = opened.ok()?.secret;
        let (under, session) = opened.expose().split_once('\n')?;
        (under == shared.under(handle)).then(|| Secret::new(session))
    }

    /// Keeps what `session`, which this replica has taken, can be gone on with.
    pub(super) async fn keep(&self, handle: &Handle, session: &dyn Session) {
        let (Some((shared, vault)), Some(resumption)) = (self.keeping(handle), session.resumption()) else { return };
        let (row, epoch) = (SessionRow::of(&handle.key), handle.epoch());
        // What it was opened under in a line of its own, then what the session gave of itself.
        let kept = Secret::new(format!("{}\n{}", shared.under(handle), resumption.expose()));
        let sealed = vault.seal(&place(row, epoch), &kept);
        if asked(shared.store.keep_resumption(row, self.boot().clone(), epoch, sealed)).await != Some(true) {
            tracing::debug!(session = %handle.key, "what a session can be gone on with is not kept");
        }
    }

    /// The session of `handle` was gone on with, so it is no new one to its thread. Said once, when it is taken: one that
    /// its server forgets later is a new one, and its thread is told.
    pub(super) async fn went_on(&self, handle: &Handle) {
        let Some(shared) = self.shared() else { return };
        tracing::info!(session = %handle.key, "went on with the session that its last owner left");
        let _ = asked(shared.store.told_epoch(SessionRow::of(&handle.key), handle.epoch())).await;
    }

    /// Whether the session of `handle` is left to its next owner: this replica hands over what it has, or has lost the
    /// right to end anything (invariant L1).
    pub(super) fn is_left_to_others(&self, handle: &Handle) -> bool {
        handle.is_held()
            && self.keeping(handle).is_some()
            && (self.is_draining() || self.trust_left() == Duration::ZERO)
    }

    /// Where sessions such as this one are kept.
    fn keeping(&self, handle: &Handle) -> Option<(&Shared, &dyn Vault)> {
        let shared = self.shared().filter(|_| self.are_shared(&handle.key))?;
        let is_remote = !handle.server.transport.owns_process();
        shared.vault.as_deref().filter(|_| is_remote).map(|vault| (shared, vault))
    }
}

impl Shared {
    /// What a session is opened under: where its server is, and the generations of resets that are applied here.
    fn under(&self, handle: &Handle) -> String {
        let generations = self.seen.as_ref().map(|seen| seen.under(&handle.server.name)).unwrap_or_default();
        format!("{} {generations}", endpoint_fingerprint(&handle.server).0)
    }
}

fn place(row: SessionRow, epoch: Epoch) -> Place {
    let row = row.0.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    Place { table: "mcp_session", column: "resumption_ct", row, generation: epoch.0 }
}

/// The store's answer; `None` = none in time, or a failure.
async fn asked<T, E>(request: impl Future<Output = Result<T, E>>) -> Option<T> {
    timeout(bounds::STORE_REQUEST, request).await.ok()?.ok()
}
