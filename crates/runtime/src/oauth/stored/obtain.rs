//! Goes around between the row and what `core` says of it, until there is a token or a reason why there is none.
//!
//! Owns what is done without the store: nothing is presented, and a token that has not expired serves on (contract 7.5,
//! DB unreadable). Each round reads the row anew, so that a peer's token is seen before anything is asked for.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds::{CHAIN_LOOK, TOKEN_WAIT};
use caribou_core::config::Secret;
use caribou_core::oauth::chain_state::{AccessKind, ChainSeen, ChainState, Step, next};
use caribou_ports::access_token::{AccessToken, NoToken};
use caribou_ports::event_sink::ChainEnded;
use caribou_ports::store::{Standing, StartChain, StoreError, StoredChain, Verdict};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::chain::{Next, Readable, SharedChain};
use super::present::{Attempt, Presentation};
use crate::oauth::connection::Desk;
use crate::oauth::refresh::ended;

/// Rounds that did not wait: only two configurations that take turns use them up.
const MAX_ROUNDS: usize = 1_000;

/// Before a row that has just changed, or is about to, is read again.
const SHORTLY: Duration = Duration::from_millis(10);

/// Why a token is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::oauth) enum Purpose {
    /// A caller has none.
    Needed,
    /// The one in hand is getting old.
    Ahead,
    /// Somebody wants another one, whatever is there.
    Another,
}

/// A token, stored before anybody hears of it wherever that is possible.
pub(in crate::oauth) async fn obtain(
    desk: Arc<Desk>,
    chain: Arc<SharedChain>,
    purpose: Purpose,
) -> Result<AccessToken, NoToken> {
    let _entered = chain.shared.underway.enter();
    let heard = chain.shared.nudges.heard();
    let mut errand = Errand { desk, chain, purpose, began: Instant::now(), replaced: None, heard, rounds: 0 };
    while errand.rounds < MAX_ROUNDS && errand.began.elapsed() < TOKEN_WAIT {
        if let Some(answer) = errand.round().await {
            return answer;
        }
    }
    Err(errand.desk.without_token("another replica asks for one and does not come to an end; try again"))
}

struct Errand {
    desk: Arc<Desk>,
    chain: Arc<SharedChain>,
    purpose: Purpose,
    began: Instant,
    /// Of [`Purpose::Another`]: the generation that was found, and is to be replaced.
    replaced: Option<u64>,
    /// Changes when a chain may have.
    heard: watch::Receiver<()>,
    /// How often it was looked and not waited.
    rounds: usize,
}

impl Errand {
    /// Reads the row and does what it says; `None` = look again.
    async fn round(&mut self) -> Option<Result<AccessToken, NoToken>> {
        self.rounds += 1;
        // Whatever is told from here on is news to what is read now.
        self.heard.mark_unchanged();
        if let Err(error) = self.chain.save().await {
            let why = format!("its new tokens are not stored yet, and it is not refreshed before they are: {error}");
            return Some(self.without_store(&why));
        }
        let row = match self.chain.parts.store.load_chain(self.chain.connection.clone()).await {
            Ok(Some(row)) => row,
            Ok(None) => return self.start(None).await,
            Err(error) => return Some(self.without_store(&unrecorded(&error))),
        };
        if self.chain.pay(&row).await {
            return None;
        }
        let read = self.chain.read(&row);
        let seen = self.seen(&row, &read);
        let policy = self.chain.policy(&self.desk.oauth);
        let step = match next(&seen, &policy) {
            Step::UseAndRefresh if self.purpose == Purpose::Ahead => next(&ChainSeen { access: None, ..seen }, &policy),
            step => step,
        };
        match step {
            Step::Use | Step::UseAndRefresh => read.access.map(|header| Ok(self.hold(&header, &row))),
            Step::StartAnew => self.start(Some(row.standing())).await,
            Step::Present => self.present(row, read.next).await,
            Step::Await(left) => self.wait(left).await,
            Step::BackOff(left) => {
                Some(Err(self.unreadable(&row, &read.next).unwrap_or_else(|| self.later(&row, left))))
            }
            Step::CallUnknown => self.call_unknown(&row).await,
            Step::GiveUp => self.give_up(&row).await,
            Step::AskPerson => {
                Some(Err(ended(&self.desk, row.last_error.as_deref().unwrap_or("it was refused before"))))
            }
        }
    }

    fn seen(&mut self, row: &StoredChain, read: &Readable) -> ChainSeen {
        let is_replaced =
            self.purpose == Purpose::Another && *self.replaced.get_or_insert(row.generation) == row.generation;
        let is_rejected = read.access.as_ref().is_some_and(|header| self.desk.slot.is_rejected(header));
        self.chain.seen(row, read, AccessKind::of(&self.desk.oauth), is_rejected || is_replaced)
    }

    fn hold(&self, header: &Secret, row: &StoredChain) -> AccessToken {
        self.desk.slot.hold(header, row.access_left, row.until_ahead)
    }

    /// Starts the chain from the configured token. Of several that do one succeeds, and all look again.
    async fn start(&self, over: Option<Standing>) -> Option<Result<AccessToken, NoToken>> {
        let is_anew = over.is_some();
        let start = StartChain { connection: self.chain.connection.clone(), seed: self.chain.seed, over };
        match self.chain.parts.store.start_chain(start).await {
            Ok(is_started) => {
                if is_started && is_anew {
                    tracing::info!(server = %self.desk.server, "the token chain starts anew from the configured refresh token");
                }
                None
            }
            Err(error) => Some(self.without_store(&unrecorded(&error))),
        }
    }

    async fn present(&self, row: StoredChain, next: Next) -> Option<Result<AccessToken, NoToken>> {
        if self.chain.shared.underway.is_closing() {
            return Some(Err(self.desk.without_token("this replica stops; ask another one")));
        }
        if let Some(unreadable) = self.unreadable(&row, &next) {
            return Some(Err(unreadable));
        }
        if let Next::Fallback(why) = &next {
            tracing::warn!(
                server = %self.desk.server,
                "the stored refresh token cannot be read, the configured one is presented: {why}"
            );
        }
        let presentation = Presentation { desk: &self.desk, chain: &self.chain, row, next };
        match presentation.make().await {
            Attempt::Given(token) => Some(Ok(token)),
            Attempt::Overtaken => None,
            Attempt::Failed(why) => Some(Err(why)),
            Attempt::NotRecorded(error) => Some(self.without_store(&unrecorded(&error))),
        }
    }

    /// Neither the stored token nor the configured one is of use here (contract 7.5).
    fn unreadable(&self, row: &StoredChain, next: &Next) -> Option<NoToken> {
        match next {
            Next::Fallback(why) if self.chain.is_fallback_refused(row) => {
                Some(ended(&self.desk, &format!("the stored one cannot be read: {why}")))
            }
            _ => None,
        }
    }

    /// A peer is at it.
    async fn wait(&mut self, left: Duration) -> Option<Result<AccessToken, NoToken>> {
        self.desk.metrics.token_awaited(&self.desk.server);
        self.rounds -= 1;
        // A lease that has just ended is not asked for in a loop without pause. The sender lives as long as the chain.
        let _ = timeout(left.clamp(SHORTLY, CHAIN_LOOK), self.heard.changed()).await;
        None
    }

    fn later(&self, row: &StoredChain, left: Duration) -> NoToken {
        let why = row.last_error.as_deref().unwrap_or("the last answer of its token endpoint is lost");
        self.desk.without_token(&format!("{why} (tried again in {} s)", left.as_secs() + 1))
    }

    /// Nobody settled a presentation: on record first, so that a holder with a successor has a last word.
    async fn call_unknown(&self, row: &StoredChain) -> Option<Result<AccessToken, NoToken>> {
        let last_word = if row.is_holder_dead { Duration::ZERO } else { self.chain.parts.times.last_word };
        let why = "a replica ended while it refreshed the token, and nobody knows whether the refresh token is spent";
        self.judge(row, ChainState::Unknown, why, last_word).await
    }

    async fn give_up(&self, row: &StoredChain) -> Option<Result<AccessToken, NoToken>> {
        let why = "the answer to a refresh is lost, and maybe the next refresh token with it";
        self.judge(row, ChainState::ReauthNeeded, why, Duration::ZERO).await
    }

    async fn judge(
        &self,
        row: &StoredChain,
        state: ChainState,
        why: &str,
        retry_in: Duration,
    ) -> Option<Result<AccessToken, NoToken>> {
        let verdict = Verdict { seen: row.standing(), state, error: why.to_owned(), retry_in };
        match self.chain.parts.store.give_up_refresh(verdict).await {
            Ok(is_judged) => {
                if is_judged {
                    self.chain.shared.nudges.tell();
                }
                if is_judged && state == ChainState::ReauthNeeded {
                    needs_person(&self.desk, &self.chain, row, why);
                } else if is_judged {
                    self.desk.metrics.presentation_unknown(&self.desk.server);
                    tracing::warn!(server = %self.desk.server, "{why}");
                } else {
                    // Somebody else has judged it, or the lease has not quite ended.
                    tokio::time::sleep(SHORTLY).await;
                }
                None
            }
            Err(error) => Some(self.without_store(&unrecorded(&error))),
        }
    }

    /// The store does not help: what has not expired serves on, and nothing is asked for.
    fn without_store(&self, why: &str) -> Result<AccessToken, NoToken> {
        let serving = self.desk.slot.last_resort().filter(|_| self.purpose != Purpose::Another);
        serving.ok_or_else(|| self.desk.without_token(why))
    }
}

/// Tells whoever watches that a chain has ended until a person acts. Whoever stored the end does.
pub(super) fn needs_person(desk: &Desk, chain: &SharedChain, row: &StoredChain, why: &str) {
    tracing::error!(
        server = %desk.server,
        event = "oauth_reauth_needed",
        "its refresh token is of no use any more: {why}; sign in again and configure the new one"
    );
    chain.shared.alarm.raise(ChainEnded {
        key: format!("oauth-chain-{}-{}", row.grant.0, row.generation),
        server: desk.server.clone(),
        generation: row.generation,
        why: why.to_owned(),
    });
}

fn unrecorded(error: &StoreError) -> String {
    format!("no token is asked for while that cannot be recorded: {error}")
}
