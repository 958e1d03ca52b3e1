//! Where a session lives: in this replica, or in another one of the cluster (durability.md 2.2; invariants L1, L2, S1).
//!
//! The row of the session in the store is the truth. It is asked when a session is to be opened, never for a call in one
//! that is open; whoever answers that it does not hold the session any more has its caller ask again. Without a cluster
//! every session lives here and nothing is asked.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::failure::Code;
use caribou_core::ids::{BootId, Epoch, Scope, SessionKey};
use caribou_core::session::{Candidate, GAP, Route, SessionRow, place, route};
use caribou_ports::peers::{PeerAddress, Peers};
use caribou_ports::store::{ClusterStore, StoreError, StoredSession, TakeSession, Taken};
use caribou_ports::vault::Vault;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::files::{Files, unreachable};
use super::handle::Handle;
use crate::config::Binding;
use crate::error::VerbError;
use crate::membership::{Membership, Peer};
use crate::outside::Outside;
use crate::reset::Seen;

/// Less trust than this is not enough to start a child (durability.md 2.2, look up).
const ENOUGH_TRUST: Duration = Duration::from_secs(1);

/// The first and the longest pause before a session that is on its way between two replicas is looked up again.
const PACE: (Duration, Duration) = (Duration::from_millis(40), Duration::from_millis(500));

/// How long the store may be away before a row that is to be freed is tried again.
const FREE_AGAIN: Duration = Duration::from_secs(1);

/// How many sessions of one replica are looked through.
const MOST_LOOKED_AT: u32 = 10_000;

/// Where a session lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Home {
    /// In this replica.
    #[default]
    Here,
    /// In another one.
    There {
        /// Which.
        peer: PeerAddress,
        /// At which epoch; `None` = it is to be opened there, and nobody holds it.
        epoch: Option<Epoch>,
    },
}

impl Home {
    /// Whether it is another replica.
    pub(crate) fn is_there(&self) -> bool {
        matches!(self, Self::There { .. })
    }
}

/// Finds, takes and frees sessions for this replica. Clones are the same.
#[derive(Clone)]
pub(crate) struct Homes {
    boot: BootId,
    shared: Option<Arc<Shared>>,
}

pub(super) struct Shared {
    pub(super) store: Arc<dyn ClusterStore>,
    peers: Arc<dyn Peers>,
    membership: Membership,
    /// The files of threads that only this replica has; `None` = all share them.
    files: Option<Files>,
    /// What seals what is left to the next owner of a session.
    pub(super) vault: Option<Arc<dyn Vault>>,
    /// What was heard of resets, where the configuration is followed.
    pub(super) seen: Option<Seen>,
}

/// Why a session was not taken.
pub(super) enum NotHeld {
    /// Somebody else holds it: look it up again.
    Moved,
    /// This replica may not.
    Refused(String),
}

impl Homes {
    /// Of the replica of this life; alone unless it has both.
    pub(crate) fn new(boot: BootId, outside: &Outside, membership: Option<&Membership>, seen: Option<Seen>) -> Self {
        let shared = outside.cluster.as_ref().zip(membership).map(|(cluster, membership)| {
            let (store, peers) = (cluster.store.clone(), cluster.peers.clone());
            let (vault, files) = (cluster.vault.clone(), Files::of(outside));
            Arc::new(Shared { store, peers, membership: membership.clone(), files, vault, seen })
        });
        Self { boot, shared }
    }

    /// The way to the others; `None` = there are none.
    pub(crate) fn peers(&self) -> Option<&Arc<dyn Peers>> {
        self.shared.as_ref().map(|shared| &shared.peers)
    }

    /// Whether sessions of this key live once in the whole cluster. The catalogue's are each replica's own.
    pub(super) fn are_shared(&self, key: &SessionKey) -> bool {
        self.shared.is_some() && !key.scope.is_catalog()
    }

    /// For how long this replica may act for the sessions that it holds (invariant L1).
    pub(crate) fn trust_left(&self) -> Duration {
        self.shared.as_ref().map_or(Duration::MAX, |shared| shared.membership.trust_left())
    }

    /// Whether this replica hands over what it has.
    pub(crate) fn is_draining(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.membership.is_draining())
    }

    /// Tells the others how full this replica is.
    pub(super) fn show_load(&self, load: f32) {
        if let Some(shared) = &self.shared {
            shared.membership.set_load(load);
        }
    }

    /// Where a call for `key` goes. Waits, until `until`, while the session is between two owners. `was_refused` = the
    /// replica that it was placed at did not take it.
    pub(super) async fn locate(
        &self,
        key: &SessionKey,
        binding: &Binding,
        until: Instant,
        was_refused: bool,
    ) -> Result<Home, VerbError> {
        let Some(shared) = self.shared.as_ref().filter(|_| self.are_shared(key)) else { return Ok(Home::Here) };
        let row = SessionRow::of(key);
        let mut pace = Pace::until(until);
        loop {
            let found = match timeout(bounds::STORE_REQUEST, shared.store.find_session(row)).await {
                Ok(Ok(found)) => found,
                Ok(Err(error)) => return Err(away(&error.to_string())),
                Err(_) => return Err(away("it does not answer")),
            };
            let waited = match route(&self.boot, found.as_ref()) {
                Route::Here(_) => return Ok(Home::Here),
                Route::Claim => match self.opener(shared, key, binding, was_refused).await? {
                    Some(home) => return Ok(home),
                    // This replica hands over what it has, and there is no other yet.
                    None => pace.wait().await,
                },
                Route::There { owner, epoch } => match shared.address(&owner) {
                    Some(peer) => return Ok(Home::There { peer, epoch: Some(epoch) }),
                    // It began a moment ago, or does not let itself be reached.
                    None => pace.wait().await,
                },
                Route::Wait(gap) => pace.wait_for(gap).await,
                Route::HandedOver { .. } => pace.wait().await,
            };
            if !waited {
                let server = binding.server.shown_name();
                let detail = format!(
                    "this session of server `{server}` belongs to a replica that is gone or hands it over, and nobody \
                     could take it over in time; try again"
                );
                return Err(VerbError { retry_after: Some(GAP), ..VerbError::new(Code::Unavailable, detail) });
            }
        }
    }

    /// Who opens a session that nobody holds; `None` = nobody can at the moment.
    async fn opener(
        &self,
        shared: &Shared,
        key: &SessionKey,
        binding: &Binding,
        was_refused: bool,
    ) -> Result<Option<Home>, VerbError> {
        let is_draining = self.is_draining();
        if let Some(files) = shared.files.as_ref().filter(|_| binding.server.transport.owns_process())
            && let Some(found) = shared.files_of(&key.scope).await?
        {
            if files.are_at(&found) {
                return Ok((!is_draining).then_some(Home::Here));
            }
            let peer = found.held_by.and_then(|boot| shared.address(&boot));
            let peer = peer.ok_or_else(|| unreachable(&key.scope))?;
            return Ok(Some(Home::There { peer, epoch: None }));
        }
        if was_refused && !is_draining {
            return Ok(Some(Home::Here));
        }
        Ok(shared.placed(&self.boot, SessionRow::of(key)))
    }

    pub(super) fn shared(&self) -> Option<&Shared> {
        self.shared.as_deref()
    }

    pub(super) fn boot(&self) -> &BootId {
        &self.boot
    }

    /// The files that only this replica has, and what it shares.
    pub(super) fn files(&self) -> Option<(&Shared, &Files)> {
        let shared = self.shared.as_deref()?;
        shared.files.as_ref().map(|files| (shared, files))
    }

    /// Takes the session of `key` for this replica, which nothing of it is alive in. With it goes the right to start its
    /// child, for as long as this replica trusts itself.
    pub(super) async fn take(&self, key: &SessionKey) -> Result<Option<Epoch>, NotHeld> {
        let taken = self.next_epoch(key).await?;
        if let Some(epoch) = taken
            && self.trust_left() < ENOUGH_TRUST
        {
            self.free(key, epoch);
            return Err(NotHeld::Refused(UNTRUSTED.to_owned()));
        }
        Ok(taken)
    }

    /// Has the store give the session of `key` out to this replica, under its next epoch.
    async fn next_epoch(&self, key: &SessionKey) -> Result<Option<Epoch>, NotHeld> {
        let Some(shared) = self.shared.as_ref().filter(|_| self.are_shared(key)) else { return Ok(None) };
        let taking = TakeSession { session: SessionRow::of(key), key: key.clone(), owner: self.boot.clone() };
        let taken = match timeout(bounds::STORE_REQUEST, shared.store.take_session(taking, GAP)).await {
            Ok(Ok(taken)) => taken,
            Ok(Err(error)) => return Err(NotHeld::Refused(away(&error.to_string()).detail)),
            // It may have been taken: it is this replica's own then, and is taken again under the next epoch.
            Err(_) => return Err(NotHeld::Refused(away("it does not answer").detail)),
        };
        match taken {
            Taken::Taken(epoch) => Ok(Some(epoch)),
            Taken::Held(_) => Err(NotHeld::Moved),
        }
    }

    /// The server forgot a session that this replica holds, and it was opened anew in place: it goes on at the next epoch
    /// once that is on record, so that no other life is ever given the same one (invariant L2).
    pub(super) fn follow(&self, handle: &Arc<Handle>) {
        let (homes, handle) = (self.clone(), handle.clone());
        tokio::spawn(async move {
            match homes.next_epoch(&handle.key).await {
                Ok(Some(epoch)) => {
                    handle.reopened(epoch);
                    if let Some(session) = handle.session() {
                        homes.keep(&handle, &**session).await;
                    }
                }
                Ok(None) | Err(_) => tracing::debug!(session = %handle.key, "its next epoch is not on record"),
            }
        });
    }

    /// Gives back a session of which nothing is left. Goes on until the store has heard of it, or this life is over: as
    /// long as it has not, the others wait for us.
    pub(crate) fn free(&self, key: &SessionKey, epoch: Epoch) {
        self.give_back(key, epoch, false);
    }

    /// The same of one that its next owner may go on with.
    pub(super) fn leave(&self, key: &SessionKey, epoch: Epoch) {
        self.give_back(key, epoch, true);
    }

    fn give_back(&self, key: &SessionKey, epoch: Epoch, is_left: bool) {
        let Some(shared) = self.shared.clone() else { return };
        let (session, boot) = (SessionRow::of(key), self.boot.clone());
        tokio::spawn(async move {
            loop {
                let given_back = match is_left {
                    true => shared.store.leave_session(session, boot.clone(), epoch),
                    false => shared.store.free_session(session, boot.clone(), epoch),
                };
                let why = match timeout(bounds::STORE_REQUEST, given_back).await {
                    Ok(Ok(_)) => return,
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "no answer in time".to_owned(),
                };
                tracing::debug!("a session that is gone is not given back yet: {why}");
                tokio::select! {
                    () = sleep(FREE_AGAIN) => {}
                    _ = shared.membership.over() => return,
                }
            }
        });
    }

    /// Notes that the thread of `key` is answered at `epoch`; whether it was answered at an earlier one before, and not
    /// at this one. `None` = the store does not know such sessions.
    pub(crate) async fn told(&self, key: &SessionKey, epoch: Epoch) -> Option<bool> {
        let shared = self.shared.as_ref().filter(|_| self.are_shared(key))?;
        let told = shared.store.told_epoch(SessionRow::of(key), epoch);
        match timeout(bounds::STORE_REQUEST, told).await {
            Ok(Ok(before)) => Some(before.is_some_and(|before| before < epoch)),
            // Only a hint is lost.
            Ok(Err(_)) | Err(_) => Some(false),
        }
    }

    /// Those who take part besides, and can be reached.
    pub(crate) fn others(&self) -> Vec<PeerAddress> {
        let Some(shared) = &self.shared else { return Vec::new() };
        let view = shared.membership.peers();
        let others = view.peers.iter().filter(|peer| peer.is_alive && peer.replica.boot != self.boot);
        others.filter_map(|peer| shared.address(&peer.replica.boot)).collect()
    }

    /// Somebody says that other replicas are there now.
    pub(crate) fn look_for_replicas(&self) {
        if let Some(shared) = &self.shared {
            shared.membership.look_soon();
        }
    }

    /// Whether a replica may hold sessions of this user and thread: it does, or that cannot be asked.
    pub(super) async fn may_hold(&self, boot: &BootId, scope: &Scope) -> bool {
        let Some(shared) = &self.shared else { return false };
        let held = shared.store.list_sessions(Some(boot.clone()), MOST_LOOKED_AT);
        match timeout(bounds::STORE_REQUEST, held).await {
            Ok(Ok(held)) => held.len() >= MOST_LOOKED_AT as usize || held.iter().any(|held| held.key.scope == *scope),
            Ok(Err(_)) | Err(_) => true,
        }
    }

    /// The sessions of the whole cluster that are on record, at most so many.
    pub(crate) async fn on_record(&self, limit: u32) -> Option<Result<Vec<StoredSession>, StoreError>> {
        let shared = self.shared.as_ref()?;
        timeout(bounds::STORE_REQUEST, shared.store.list_sessions(None, limit)).await.ok()
    }
}

impl Shared {
    /// Where one life is reached, if it takes part.
    fn address(&self, boot: &BootId) -> Option<PeerAddress> {
        let view = self.membership.peers();
        let peer = view.peers.iter().find(|peer| peer.replica.boot == *boot)?;
        peer.replica.address.clone().map(|address| PeerAddress { boot: boot.clone(), address })
    }

    /// Who opens a session that nobody holds; `None` = nobody can at the moment.
    fn placed(&self, ours: &BootId, row: SessionRow) -> Option<Home> {
        let view = self.membership.peers();
        let can = |peer: &&Peer| peer.takes_part() && peer.replica.address.is_some() && peer.replica.boot != *ours;
        let candidate = |peer: &Peer| Candidate { boot: peer.replica.boot.clone(), load: peer.load };
        let others: Vec<Candidate> = view.peers.iter().filter(can).map(candidate).collect();
        // One that hands over what it has counts as fuller than full, and is out of the question.
        let is_draining = self.membership.is_draining();
        let load = if is_draining { f32::INFINITY } else { self.membership.load() };
        let placed = place(&Candidate { boot: ours.clone(), load }, &others, &row).clone();
        if placed != *ours {
            return self.address(&placed).map(|peer| Home::There { peer, epoch: None });
        }
        (!is_draining).then_some(Home::Here)
    }
}

/// What a caller is told while this replica may not act.
pub(super) const UNTRUSTED: &str = "this replica has lost touch with the database, so it must not use its sessions now; \
                                    another replica can";

pub(super) fn away(why: &str) -> VerbError {
    let detail = format!("where this session lives cannot be asked of the database: {why}");
    VerbError { retry_after: Some(GAP), ..VerbError::new(Code::Unavailable, detail) }
}

/// Looks again and again, less often each time, until a point in time.
pub(super) struct Pace {
    until: Instant,
    next: Duration,
}

impl Pace {
    pub(super) fn until(until: Instant) -> Self {
        Self { until, next: PACE.0 }
    }

    /// Waits for the next look. False when there is no time for one.
    pub(super) async fn wait(&mut self) -> bool {
        let pause = self.next;
        self.next = (self.next * 3 / 2).min(PACE.1);
        self.wait_for(pause).await
    }

    /// Waits this long. False when there is no time for it.
    async fn wait_for(&self, pause: Duration) -> bool {
        let then = Instant::now() + pause;
        if then >= self.until {
            return false;
        }
        sleep_until(then).await;
        true
    }
}
