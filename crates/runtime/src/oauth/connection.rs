//! One connection with an `oauth` block: what its sessions ask for tokens.
//!
//! Owns the way around the actor: a good token is read from the slot. Its actor starts at the first need and is started
//! anew when it failed; slot and chain are not the actor's, so nothing is lost with it.

use std::future::ready;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use caribou_core::bounds::MAX_WAITING_FOR_TOKEN;
use caribou_core::config::OAuth;
use caribou_core::ids::ServerName;
use caribou_ports::BoxFuture;
use caribou_ports::access_token::{AccessToken, AccessTokens, NoToken};
use caribou_ports::token_endpoint::TokenEndpoint;
use ractor::{ActorCell, ActorRef, ActorRuntime, ActorStatus};
use tokio::sync::{Semaphore, oneshot};

use super::chain::MemoryChain;
use super::coordinator::{Coordinator, CoordinatorMessage, Waiter};
use super::refresh::refresh;
use super::slot::{InHand, Slot};
use super::stored::{Purpose, SharedChain, obtain};
use crate::metrics::Metrics;

/// Where the refresh token to present next stands. Clones are the same chain.
#[derive(Clone)]
pub(super) enum Chain {
    /// In this process.
    Memory(MemoryChain),
    /// In a row that all replicas share.
    Shared(Arc<SharedChain>),
}

/// What a connection and its actor share.
pub(super) struct Desk {
    pub(super) server: ServerName,
    pub(super) oauth: Arc<OAuth>,
    /// Whether its addresses are a person's own.
    pub(super) guarded: bool,
    pub(super) endpoint: Arc<dyn TokenEndpoint>,
    pub(super) chain: Chain,
    pub(super) slot: Slot,
    pub(super) metrics: Arc<Metrics>,
}

impl Desk {
    /// The token in hand, or why there is none; `None` = a refresh is needed.
    pub(super) fn in_hand(&self) -> Option<Result<AccessToken, NoToken>> {
        match self.slot.look(self.oauth.refresh_skew) {
            InHand::Good(token) => Some(Ok(token)),
            InHand::Stale => None,
            InHand::Refused(left) => {
                let message = format!(
                    "server `{}` rejects access tokens that were just given to us: reauthorisation is needed; check \
                     client, scope and audience of its `oauth`, or set a new `oauth.refresh_token` (asked again in {} s)",
                    self.server,
                    left.as_secs() + 1
                );
                Some(Err(NoToken { message, needs_person: true }))
            }
        }
    }

    /// Asks for the next token, or finds the one that a peer has. Runs to its end whoever waits for it.
    pub(super) async fn refreshed(self: Arc<Self>, purpose: Purpose) -> Result<AccessToken, NoToken> {
        match self.chain.clone() {
            Chain::Memory(chain) => refresh(self, chain).await,
            Chain::Shared(chain) => obtain(self, chain, purpose).await,
        }
    }

    pub(super) fn without_token(&self, why: &str) -> NoToken {
        NoToken { message: format!("server `{}` has no access token: {why}", self.server), needs_person: false }
    }
}

/// One connection.
pub(super) struct Connection {
    pub(super) desk: Arc<Desk>,
    /// Under whom actors live; set before any caller comes.
    root: Arc<OnceLock<ActorCell>>,
    coordinator: Mutex<Option<ActorRef<CoordinatorMessage>>>,
    /// Taken before a message is sent, since mailboxes have no bound of their own (invariant B1).
    turns: Semaphore,
}

impl Connection {
    pub(super) fn new(desk: Desk, root: Arc<OnceLock<ActorCell>>) -> Arc<Self> {
        let (coordinator, turns) = (Mutex::default(), Semaphore::new(MAX_WAITING_FOR_TOKEN));
        Arc::new(Self { desk: Arc::new(desk), root, coordinator, turns })
    }

    /// A token that is not the one in hand, whatever that is good for.
    pub(super) async fn another(&self) -> Result<AccessToken, NoToken> {
        self.told(CoordinatorMessage::Another).await
    }

    async fn told(&self, message: impl FnOnce(Waiter) -> CoordinatorMessage) -> Result<AccessToken, NoToken> {
        let Ok(_turn) = self.turns.try_acquire() else {
            return Err(self.desk.without_token("too many requests wait for one already; try again"));
        };
        let (waiter, answer) = oneshot::channel();
        let told = self.coordinator().map(|actor| actor.cast(message(waiter)));
        let answer = if matches!(told, Some(Ok(()))) { answer.await.ok() } else { None };
        answer.unwrap_or_else(|| Err(self.desk.without_token("this is a fault of Caribou; its log says more")))
    }

    /// The actor, started where there is none. `None` when the replica stops.
    fn coordinator(&self) -> Option<ActorRef<CoordinatorMessage>> {
        let mut held = self.coordinator.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(actor) = held.as_ref().filter(|actor| actor.get_status() < ActorStatus::Draining) {
            return Some(actor.clone());
        }
        let root = self.root.get()?.clone();
        let started = ActorRuntime::spawn_linked_instant(None, Coordinator, self.desk.clone(), root);
        match started {
            Ok((actor, _)) => {
                *held = Some(actor.clone());
                Some(actor)
            }
            Err(error) => {
                tracing::error!(server = %self.desk.server, %error, "the actor of a token chain did not start");
                None
            }
        }
    }
}

impl AccessTokens for Connection {
    fn current(&self) -> BoxFuture<'_, Result<AccessToken, NoToken>> {
        match self.desk.in_hand() {
            Some(known) => {
                if known.is_ok()
                    && self.desk.slot.is_ahead_due()
                    && let Some(actor) = self.coordinator()
                {
                    let _ = actor.cast(CoordinatorMessage::Ahead);
                }
                Box::pin(ready(known))
            }
            None => Box::pin(self.told(CoordinatorMessage::Want)),
        }
    }

    fn rejected(&self, token: &AccessToken) {
        let server = &self.desk.server;
        if self.desk.slot.reject(token.serial) {
            tracing::warn!(%server, "it rejects an access token that just replaced a rejected one");
        } else {
            tracing::debug!(%server, serial = token.serial, "it rejects an access token");
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(actor) = self.coordinator.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            // A request that is under way goes on, and its chain learns how it came out.
            actor.stop(None);
        }
    }
}
