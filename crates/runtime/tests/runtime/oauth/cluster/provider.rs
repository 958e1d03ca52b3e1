//! A strict provider: each refresh token is good once, and one that is shown again revokes the whole family.
//!
//! It also judges: what was shown to it, whose turn it was by the store, and whether a token that came back twice may
//! have come back (invariants O1, O2).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou_core::config::Secret;
use caribou_core::ids::ServerName;
use caribou_core::oauth::chain_state::ChainState;
use caribou_ports::BoxFuture;
use caribou_ports::store::OAuthChains;
use caribou_ports::token_endpoint::{TokenAnswer, TokenEndpoint, TokenRequest, TokenRequestError};
use caribou_store::Memory;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::mutant::Mutant;
use crate::borders::Borders;

/// What becomes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::oauth) enum Fate {
    /// Answered after so long.
    Answered(Duration),
    /// The token is rotated, and the answer lost.
    Lost,
    /// HTTP 500, and nothing is rotated.
    Refused,
    /// No connection comes about.
    Unreachable,
}

/// How long after its delivery a successor is stored at the latest: it is tried every few seconds.
const TIME_TO_STORE: Duration = Duration::from_secs(15);

/// One time that a token was shown.
#[derive(Clone, Debug)]
struct Shown {
    borders: Arc<Borders<Mutant>>,
    /// Until the provider is done with it.
    until: Instant,
    /// When the one who showed it had the answer in hand.
    delivered: Option<Instant>,
    /// It will never have it.
    is_lost: bool,
}

#[derive(Debug, Default)]
struct Book {
    /// The one good token; `None` = the family is revoked.
    good: Option<u64>,
    issued: u64,
    given: u64,
    shown: HashMap<u64, Vec<Shown>>,
    fates: VecDeque<Fate>,
    life: Duration,
    rotates: bool,
    overlaps: Vec<String>,
    unexcused: Vec<String>,
    without_intent: Vec<String>,
    excused: usize,
    /// From when to when the store was away.
    store_away: Vec<(Instant, Instant)>,
    /// Commits that were acknowledged and lost: anything may follow.
    is_anything_excused: bool,
}

/// The provider.
#[derive(Clone, Debug)]
pub(in crate::oauth) struct Provider {
    book: Arc<Mutex<Book>>,
    store: Memory,
}

impl Provider {
    pub(super) fn new(store: Memory, life: Duration) -> Self {
        let book = Book { good: Some(1), issued: 1, life, rotates: true, ..Book::default() };
        Self { book: Arc::new(Mutex::new(book)), store }
    }

    pub(in crate::oauth) fn then(&self, fate: Fate) {
        self.book.lock().unwrap().fates.push_back(fate);
    }

    /// From now on its refresh tokens stay good.
    pub(in crate::oauth) fn stop_rotating(&self) {
        self.book.lock().unwrap().rotates = false;
    }

    pub(in crate::oauth) fn excuse_anything(&self) {
        self.book.lock().unwrap().is_anything_excused = true;
    }

    pub(super) fn store_is_away(&self, length: Duration) {
        let now = Instant::now();
        self.book.lock().unwrap().store_away.push((now, now + length));
    }

    /// How often tokens were shown.
    pub(in crate::oauth) fn requests(&self) -> usize {
        self.book.lock().unwrap().shown.values().map(Vec::len).sum()
    }

    /// How many tokens were given.
    pub(in crate::oauth) fn given(&self) -> u64 {
        self.book.lock().unwrap().given
    }

    /// How often this token was shown.
    pub(in crate::oauth) fn shown(&self, number: u64) -> usize {
        self.book.lock().unwrap().shown.get(&number).map_or(0, Vec::len)
    }

    pub(in crate::oauth) fn is_revoked(&self) -> bool {
        self.book.lock().unwrap().good.is_none()
    }

    /// How often a token came back that may have come back: nobody could know.
    pub(in crate::oauth) fn excused(&self) -> usize {
        self.book.lock().unwrap().excused
    }

    /// What must never happen, and did.
    pub(in crate::oauth) fn violations(&self) -> Vec<String> {
        let book = self.book.lock().unwrap();
        [&book.overlaps, &book.unexcused, &book.without_intent].into_iter().flatten().cloned().collect()
    }

    /// The endpoint as one replica reaches it.
    pub(super) fn seen_by(&self, owner: &str, borders: Arc<Borders<Mutant>>) -> Arc<dyn TokenEndpoint> {
        Arc::new(Door { provider: self.clone(), owner: owner.to_owned(), borders })
    }

    /// Whether the store says that it is this replica's turn.
    async fn has_intent(&self, owner: &str) -> bool {
        let row = self.store.load_chain(ServerName::from("a")).await.unwrap();
        row.is_some_and(|row| {
            row.state == ChainState::InFlight
                && !row.lease_left.is_zero()
                && row.lease_owner.is_some_and(|holder| holder.as_str() == owner)
        })
    }

    /// Takes a token in; what it answers, and when.
    fn take(&self, number: u64, door: &Door, has_intent: bool) -> (Fate, Option<TokenAnswer>, usize) {
        let (mut book, owner) = (self.book.lock().unwrap(), &door.owner);
        let now = Instant::now();
        let fate = book.fates.pop_front().unwrap_or(Fate::Answered(Duration::from_secs(1)));
        let takes = if let Fate::Answered(takes) = fate { takes } else { Duration::from_secs(1) };
        if !has_intent && !book.is_anything_excused {
            book.without_intent.push(format!("{owner} shows token {number} without a standing intent"));
        }
        let earlier = book.shown.get(&number).cloned().unwrap_or_default();
        if !book.is_anything_excused && earlier.iter().any(|one| one.until > now) {
            book.overlaps.push(format!("{owner} shows token {number} while another replica does"));
        }
        let is_good = book.good == Some(number);
        if !is_good && book.good.is_some() {
            if book.is_anything_excused || earlier.iter().any(|one| book.is_excused(one)) {
                book.excused += 1;
            } else {
                book.unexcused.push(format!("{owner} shows token {number} again, whose successor was received"));
            }
            book.good = None;
        }
        let answer = (is_good && fate != Fate::Refused).then(|| book.answer(number));
        let is_lost = fate == Fate::Lost;
        let shown = Shown { borders: door.borders.clone(), until: now + takes, delivered: None, is_lost };
        let all = book.shown.entry(number).or_default();
        all.push(shown);
        (fate, answer, all.len() - 1)
    }

    fn delivered(&self, number: u64, at: usize) {
        let mut book = self.book.lock().unwrap();
        let shown = book.shown.get_mut(&number).and_then(|all| all.get_mut(at)).unwrap();
        shown.delivered = Some(Instant::now());
    }
}

impl Book {
    fn answer(&mut self, number: u64) -> TokenAnswer {
        self.given += 1;
        let next = self.rotates.then(|| {
            self.issued = number + 1;
            self.issued
        });
        self.good = Some(next.unwrap_or(number));
        TokenAnswer {
            header: Secret::new(format!("Bearer at-{}", self.given)),
            expires_in: self.life.as_secs(),
            refresh_token: next.map(|next| Secret::new(format!("rt-{next}"))),
        }
    }

    /// Whether nobody can know what became of this presentation: its answer never came, or whoever it came to had
    /// no time to store it.
    fn is_excused(&self, shown: &Shown) -> bool {
        let Some(delivered) = shown.delivered.filter(|_| !shown.is_lost) else { return true };
        shown.borders.moved_since(delivered, &self.store_away) < TIME_TO_STORE
    }
}

#[derive(Clone)]
struct Door {
    provider: Provider,
    owner: String,
    borders: Arc<Borders<Mutant>>,
}

impl TokenEndpoint for Door {
    fn request(&self, request: TokenRequest) -> BoxFuture<'static, Result<TokenAnswer, TokenRequestError>> {
        let door = self.clone();
        Box::pin(async move {
            let Door { provider, owner, borders } = &door;
            borders.cross().await;
            let unreachable = provider.book.lock().unwrap().fates.front() == Some(&Fate::Unreachable);
            if unreachable {
                provider.book.lock().unwrap().fates.pop_front();
                return Err(TokenRequestError::NotSent("nobody listens; nothing was sent".to_owned()));
            }
            let is_held = request.still_held.is_none_or(|still_held| still_held());
            if !is_held && borders.mutant != Some(Mutant::NoTrustCheck) {
                return Err(TokenRequestError::NotSent("the right ended; nothing was sent".to_owned()));
            }
            let token = request.refresh_token.unwrap();
            let number: u64 = token.expose().strip_prefix("rt-").unwrap().parse().unwrap();
            let has_intent = provider.has_intent(owner).await;
            let (fate, answer, at) = provider.take(number, &door, has_intent);
            // From here on the provider works, whatever becomes of the replica.
            let (told, answered) = oneshot::channel();
            tokio::spawn(async move {
                sleep(if let Fate::Answered(takes) = fate { takes } else { Duration::from_secs(1) }).await;
                let _ = told.send(());
            });
            let _ = answered.await;
            borders.cross().await;
            let refused = |error: Option<&str>| {
                let error = error.map(str::to_owned);
                Err(TokenRequestError::Refused { error, message: "the token endpoint answered an error".to_owned() })
            };
            match (fate, answer) {
                (Fate::Lost, _) => Err(TokenRequestError::Unknown("the answer broke off".to_owned())),
                (Fate::Refused, _) => refused(None),
                (_, Some(answer)) => {
                    provider.delivered(number, at);
                    Ok(answer)
                }
                (_, None) => refused(Some("invalid_grant")),
            }
        })
    }
}
