//! One presentation of the refresh token: the intent is committed, one request is sent, and what comes of it is stored.
//!
//! Owns the order of these and what is done when the store fails in between. Runs to its end whoever waits (R3).

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds::MAX_CHAIN_ERROR_BYTES;
use caribou_core::config::Secret;
use caribou_core::oauth::chain_state::{AccessKind, ChainState, Presented, Settlement, settle};
use caribou_core::oauth::form;
use caribou_core::oauth::refusal;
use caribou_ports::access_token::{AccessToken, NoToken};
use caribou_ports::store::{BeginRefresh, ChainLease, FailedRefresh, StoreError, StoredChain};
use caribou_ports::token_endpoint::{TokenAnswer, TokenRequest, TokenRequestError};
use tokio::time::Instant;

use super::chain::{Next, SharedChain};
use super::lease::{Trust, renewed};
use super::obtain::needs_person;
use super::unsaved::Brought;
use crate::chance::chance;
use crate::oauth::connection::Desk;
use crate::oauth::patience::patiently;
use crate::oauth::refresh::{ended, in_span, outcome};
use crate::survived::survived;

/// What came of it.
pub(super) enum Attempt {
    Given(AccessToken),
    /// Somebody else was faster: the row says more.
    Overtaken,
    Failed(NoToken),
    /// The intent could not be stored, so nothing was sent.
    NotRecorded(StoreError),
}

pub(super) struct Presentation<'p> {
    pub(super) desk: &'p Arc<Desk>,
    pub(super) chain: &'p Arc<SharedChain>,
    /// As it was seen.
    pub(super) row: StoredChain,
    pub(super) next: Next,
}

impl Presentation<'_> {
    pub(super) async fn make(self) -> Attempt {
        let oauth = &self.desk.oauth;
        let token = match &self.next {
            Next::Stored(token) => Some(token.clone()),
            Next::Seed | Next::Fallback(_) => oauth.refresh_token.clone(),
        };
        let token = match (form(oauth, token.as_ref()), token) {
            (Ok(_), Some(token)) => token,
            (Err(lacking), _) => {
                let message = format!("server `{}` has no access token: {lacking}", self.desk.server);
                return Attempt::Failed(NoToken { message, needs_person: true });
            }
            (Ok(_), None) => return Attempt::Failed(self.desk.without_token("it has no refresh token")),
        };
        let sent = Instant::now();
        let lease = match self.begin().await {
            Ok(Some(lease)) => lease,
            Ok(None) => return Attempt::Overtaken,
            Err(error) => return Attempt::NotRecorded(error),
        };
        let asked_at = Instant::now();
        let answer = in_span(self.desk, self.ask(&lease, sent, token.clone())).await;
        self.desk.metrics.refreshed(&self.desk.server, outcome(&answer));
        match answer {
            Ok(TokenAnswer { header, expires_in, refresh_token }) => {
                let life = Duration::from_secs(expires_in);
                let brought = self.brought(token, refresh_token, Some(header.clone()), asked_at, life);
                self.given(brought, &header).await
            }
            Err(error) => self.failed(&lease, &error, token, asked_at).await,
        }
    }

    /// Commits the intent (R1). `None` = another one was first.
    async fn begin(&self) -> Result<Option<ChainLease>, StoreError> {
        let store = &self.chain.parts.store;
        let (seen, owner) = (self.row.standing(), self.chain.shared.boot.clone());
        let lease = ChainLease {
            grant: seen.grant.clone(),
            generation: seen.generation,
            seq: seen.lease_seq + 1,
            owner: owner.clone(),
        };
        let begun = store.begin_refresh(BeginRefresh { seen, owner, lease: self.chain.parts.times.lease }).await;
        match begun {
            Ok(is_begun) => Ok(is_begun.then_some(lease)),
            Err(StoreError::OutcomeUnknown(_)) => {
                // Whether it was committed is on record: ours or nobody's.
                let row = store.load_chain(self.chain.connection.clone()).await?;
                let is_ours = |row: &StoredChain| {
                    row.grant == lease.grant
                        && row.generation == lease.generation
                        && row.lease_seq == lease.seq
                        && row.lease_owner.as_ref() == Some(&lease.owner)
                        && row.state == ChainState::InFlight
                };
                Ok(row.is_some_and(|row| is_ours(&row)).then_some(lease))
            }
            Err(error) => Err(error),
        }
    }

    /// Sends the request, while the lease is prolonged beside it. Nothing but the end of all patience drops it.
    async fn ask(&self, lease: &ChainLease, sent: Instant, token: Secret) -> Result<TokenAnswer, TokenRequestError> {
        let times = self.chain.parts.times;
        let trust = Trust::from(sent, &times);
        let request = TokenRequest {
            server: self.desk.server.clone(),
            oauth: self.desk.oauth.clone(),
            refresh_token: Some(token),
            guarded: self.desk.guarded,
            still_held: Some(trust.gate()),
        };
        let _renewing = renewed(self.chain.parts.store.clone(), lease.clone(), times, trust);
        let asked = patiently(times.abandoned_after, survived(self.desk.endpoint.request(request))).await;
        let unknown = |why: String| Err(TokenRequestError::Unknown(why));
        match asked {
            Some(Some(answer)) => answer,
            Some(None) => unknown("the request ended in a fault of Caribou; its log says more".to_owned()),
            None => unknown(format!("the token endpoint was given up after {} s", times.abandoned_after.as_secs())),
        }
    }

    /// A provider that gives no successor goes on with the token presented.
    fn brought(
        &self,
        presented: Secret,
        successor: Option<Secret>,
        header: Option<Secret>,
        asked_at: Instant,
        life: Duration,
    ) -> Brought {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 255")]
        let spread = (chance() * 255.0) as u8;
        Brought {
            row: self.row.clone(),
            rotated: successor.is_some(),
            refresh: successor.unwrap_or(presented),
            header,
            kind: AccessKind::of(&self.desk.oauth),
            asked_at,
            life,
            spread,
        }
    }

    /// Stores what came, then hands it out; what cannot be stored is handed out too, and kept (R4).
    async fn given(&self, brought: Brought, header: &Secret) -> Attempt {
        let server = &self.desk.server;
        let (left, until_ahead) = brought.left();
        let (expires_in, rotated) = (brought.life.as_secs(), brought.rotated);
        match self.chain.store(&brought).await {
            Ok(true) => tracing::info!(%server, expires_in, rotated, "access token refreshed"),
            Ok(false) => {
                tracing::warn!(%server, "a token came after the chain had moved on; the stored one is used");
                return Attempt::Overtaken;
            }
            Err(error) => self.unstored(brought, &error),
        }
        Attempt::Given(self.desk.slot.hold(header, left, until_ahead))
    }

    fn unstored(&self, brought: Brought, error: &StoreError) {
        let server = &self.desk.server;
        self.desk.metrics.tokens_unsaved(server);
        tracing::error!(%server, "new tokens came and are not stored yet; they are used, and stored before the next refresh: {error}");
        self.chain.keep(brought);
    }

    /// Stores why nothing came. Whoever was overtaken meanwhile changes nothing (R5).
    async fn failed(&self, lease: &ChainLease, error: &TokenRequestError, token: Secret, asked_at: Instant) -> Attempt {
        tracing::warn!(server = %self.desk.server, "no access token: {error}");
        let (presented, code) = match error {
            TokenRequestError::NotSent(_) => (Presented::NotSent, None),
            TokenRequestError::Refused { error, .. } => (Presented::Refused(error.as_deref()), error.as_deref()),
            TokenRequestError::Unusable { refresh_token: Some(successor), .. } => {
                // The token presented is spent all the same.
                let brought = self.brought(token, Some(successor.clone()), None, asked_at, Duration::ZERO);
                if let Err(error) = self.chain.store(&brought).await {
                    self.unstored(brought, &error);
                }
                return Attempt::Failed(self.desk.without_token(&error.to_string()));
            }
            TokenRequestError::Unusable { .. } => (Presented::Unusable, None),
            TokenRequestError::Unknown(_) => (Presented::Lost, None),
        };
        let fallback = match &self.next {
            Next::Fallback(why) => Some(why),
            Next::Seed | Next::Stored(_) => None,
        };
        let (state, retry_in) = match settle(presented, self.row.failures, fallback.is_some()) {
            Settlement::Keep(wait) => (ChainState::Idle, wait),
            Settlement::End => (ChainState::ReauthNeeded, Duration::ZERO),
            // `settle` commits only what came.
            Settlement::Unknown | Settlement::Commit => (ChainState::Unknown, Duration::ZERO),
        };
        let why = self.told(error, state);
        let failure = FailedRefresh { lease: lease.clone(), state, error: shortened(&why), retry_in };
        match self.chain.settle(failure).await {
            Ok(false) => return Attempt::Overtaken,
            Ok(true) if state == ChainState::ReauthNeeded => needs_person(self.desk, self.chain, &self.row, &why),
            Ok(true) => {}
            Err(error) => tracing::warn!(server = %self.desk.server, "how a refresh failed is not stored yet: {error}"),
        }
        if state == ChainState::Unknown {
            self.desk.metrics.presentation_unknown(&self.desk.server);
        }
        Attempt::Failed(match fallback {
            Some(unread) if code == Some("invalid_grant") => {
                self.chain.fallback_refused(&self.row);
                ended(self.desk, &format!("the stored one cannot be read, and the configured one is spent: {unread}"))
            }
            _ if state == ChainState::ReauthNeeded => ended(self.desk, &why),
            _ => NoToken { needs_person: refusal::needs_person(code), ..self.desk.without_token(&why) },
        })
    }

    /// The error for people; an earlier loss is the likely reason of an end.
    fn told(&self, error: &TokenRequestError, state: ChainState) -> String {
        let lost = "; an earlier answer was lost, and maybe the next refresh token with it";
        let is_likely = state == ChainState::ReauthNeeded && self.row.presented > 0;
        format!("{error}{}", if is_likely { lost } else { "" })
    }
}

/// What is stored of an error.
fn shortened(why: &str) -> String {
    why[..why.floor_char_boundary(MAX_CHAIN_ERROR_BYTES)].to_owned()
}
