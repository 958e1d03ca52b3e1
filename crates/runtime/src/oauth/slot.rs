//! The token in hand.
//!
//! Owns whether it may be handed out: not when it is expiring, not after the server rejected it, and nothing at all for
//! a while when the server rejects a token that is its successor and just came: asking on would only loop. And whether
//! it is old enough to be refreshed while it still serves.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use caribou_core::bounds::{REFRESH_AHEAD_AGAIN, TOKEN_REJECTED_AGAIN};
use caribou_core::config::Secret;
use caribou_core::oauth::is_expiring;
use caribou_ports::access_token::AccessToken;
use tokio::time::Instant;

/// The token of one connection.
#[derive(Default)]
pub(super) struct Slot(RwLock<Held>);

#[derive(Default)]
struct Held {
    token: Option<Token>,
    /// How many tokens there were.
    given: u64,
    /// Until when nothing is handed out.
    refused_until: Option<Instant>,
}

struct Token {
    token: AccessToken,
    given_at: Instant,
    expires_at: Instant,
    /// From when on it is refreshed in the background; `None` = never.
    ahead_at: Option<Instant>,
    /// The server rejected it.
    is_rejected: bool,
    /// It came because the server had rejected the one before.
    replaces_rejected: bool,
}

/// What is in hand.
#[derive(Debug)]
pub(super) enum InHand {
    /// A token that may be handed out.
    Good(AccessToken),
    /// None, but a refresh brings one.
    Stale,
    /// The server rejects whatever it is given; for so long it is left alone.
    Refused(Duration),
}

impl Slot {
    pub(super) fn look(&self, skew: Duration) -> InHand {
        let held = self.read();
        let now = Instant::now();
        if let Some(left) =
            held.refused_until.map(|until| until.saturating_duration_since(now)).filter(|l| !l.is_zero())
        {
            return InHand::Refused(left);
        }
        match &held.token {
            Some(held) if !held.is_rejected && !is_expiring(held.expires_at.saturating_duration_since(now), skew) => {
                InHand::Good(held.token.clone())
            }
            _ => InHand::Stale,
        }
    }

    /// Takes a token that came; its life counts from `asked_at`, before it was asked for.
    pub(super) fn put(&self, header: Secret, asked_at: Instant, expires_in: Duration) -> AccessToken {
        let mut held = self.write();
        held.given += 1;
        let token = AccessToken { header, serial: held.given };
        held.token = Some(Token {
            token: token.clone(),
            given_at: Instant::now(),
            // A life beyond what the clock can hold is cut to a day, and then asked for again.
            expires_at: asked_at.checked_add(expires_in).unwrap_or(asked_at + Duration::from_secs(86_400)),
            ahead_at: None,
            is_rejected: false,
            replaces_rejected: held.token.as_ref().is_some_and(|before| before.is_rejected),
        });
        token
    }

    /// Takes a token that is stored. The same one as before keeps its number, and stays rejected if it was.
    pub(super) fn hold(&self, header: &Secret, left: Duration, until_ahead: Duration) -> AccessToken {
        let now = Instant::now();
        // One that is past its time already was just looked at.
        let ahead_at = now.checked_add(if until_ahead.is_zero() { REFRESH_AHEAD_AGAIN } else { until_ahead });
        let is_same = |token: &Token| token.token.header == *header;
        let is_known = self.read().token.as_ref().is_some_and(is_same);
        let token = if is_known { None } else { Some(self.put(header.clone(), now, left)) };
        let mut held = self.write();
        match (held.token.as_mut().filter(|token| is_same(token)), token) {
            (Some(known), _) => {
                known.expires_at = now.checked_add(left).unwrap_or(known.expires_at);
                known.ahead_at = ahead_at;
                known.token.clone()
            }
            // Another one came in between.
            (None, Some(token)) => token,
            (None, None) => {
                drop(held);
                self.put(header.clone(), now, left)
            }
        }
    }

    /// Whether this is the token in hand, and the server rejected it.
    pub(super) fn is_rejected(&self, header: &Secret) -> bool {
        self.read().token.as_ref().is_some_and(|held| held.is_rejected && held.token.header == *header)
    }

    /// The token in hand if it has not expired, be it ever so close.
    pub(super) fn last_resort(&self) -> Option<AccessToken> {
        let held = self.read();
        let is_alive = |held: &&Token| !held.is_rejected && held.expires_at > Instant::now();
        held.token.as_ref().filter(is_alive).map(|held| held.token.clone())
    }

    /// Whether the token in hand is due to be refreshed in the background. Says so once, and again after a while.
    pub(super) fn is_ahead_due(&self) -> bool {
        let now = Instant::now();
        let is_due = |held: &Token| held.ahead_at.is_some_and(|at| at <= now);
        if !self.read().token.as_ref().is_some_and(is_due) {
            return false;
        }
        let mut held = self.write();
        let due = held.token.as_mut().filter(|held| is_due(held));
        due.map(|held| held.ahead_at = now.checked_add(REFRESH_AHEAD_AGAIN)).is_some()
    }

    /// The server rejected the token of this number. Whether that is the last straw.
    pub(super) fn reject(&self, serial: u64) -> bool {
        let mut held = self.write();
        let Some(token) = held.token.as_mut().filter(|held| held.token.serial == serial && !held.is_rejected) else {
            return false;
        };
        token.is_rejected = true;
        let until = token.given_at + TOKEN_REJECTED_AGAIN;
        let is_again = token.replaces_rejected && Instant::now() < until;
        if is_again {
            held.refused_until = Some(until);
        }
        is_again
    }

    fn read(&self) -> RwLockReadGuard<'_, Held> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Held> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SKEW: Duration = Duration::from_secs(60);

    fn put(slot: &Slot, text: &str, seconds: u64) -> AccessToken {
        slot.put(Secret::new(text), Instant::now(), Duration::from_secs(seconds))
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_good_until_the_skew_before_its_end() {
        // Contract 7.3, expiring.
        let slot = Slot::default();
        assert!(matches!(slot.look(SKEW), InHand::Stale));
        let token = put(&slot, "Bearer 1", 100);
        tokio::time::advance(Duration::from_millis(39_999)).await;
        assert!(matches!(slot.look(SKEW), InHand::Good(good) if good == token));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(matches!(slot.look(SKEW), InHand::Stale));
        assert!(matches!(slot.look(Duration::ZERO), InHand::Good(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_very_token_that_was_rejected_is_spent() {
        let slot = Slot::default();
        let first = put(&slot, "Bearer 1", 3_600);
        assert!(!slot.reject(first.serial) && matches!(slot.look(SKEW), InHand::Stale));
        let second = put(&slot, "Bearer 2", 3_600);
        assert!(second.serial > first.serial);
        assert!(!slot.reject(first.serial), "told late");
        assert!(matches!(slot.look(SKEW), InHand::Good(good) if good == second));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stored_token_keeps_its_number_and_comes_due_before_its_end_once() {
        // Durability.md 3.3, R6 and R7.
        let slot = Slot::default();
        let hold =
            |text, left, ahead| slot.hold(&Secret::new(text), Duration::from_secs(left), Duration::from_secs(ahead));
        let first = hold("Bearer 1", 100, 80);
        assert_eq!(hold("Bearer 1", 100, 80), first);
        assert!(!slot.is_ahead_due());
        tokio::time::advance(Duration::from_secs(80)).await;
        assert!(slot.is_ahead_due() && !slot.is_ahead_due(), "one background refresh");
        assert!(slot.last_resort().is_some());
        slot.reject(first.serial);
        assert!(slot.is_rejected(&Secret::new("Bearer 1")) && slot.last_resort().is_none());
        assert_eq!(hold("Bearer 1", 20, 0), first);
        assert!(matches!(slot.look(SKEW), InHand::Stale), "rejected stays rejected");
        let second = hold("Bearer 2", 100, 80);
        assert!(second.serial > first.serial && !slot.is_rejected(&Secret::new("Bearer 2")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_successor_rejected_at_once_ends_the_asking_for_a_while() {
        let slot = Slot::default();
        let first = put(&slot, "Bearer 1", 3_600);
        slot.reject(first.serial);
        let second = put(&slot, "Bearer 2", 3_600);
        assert!(slot.reject(second.serial) && !slot.reject(second.serial));
        assert!(matches!(slot.look(SKEW), InHand::Refused(left) if left == TOKEN_REJECTED_AGAIN));
        tokio::time::advance(TOKEN_REJECTED_AGAIN).await;
        assert!(matches!(slot.look(SKEW), InHand::Stale));
        // One that worked for a while was revoked like any other.
        let third = put(&slot, "Bearer 3", 3_600);
        tokio::time::advance(TOKEN_REJECTED_AGAIN).await;
        assert!(!slot.reject(third.serial) && matches!(slot.look(SKEW), InHand::Stale));
    }
}
