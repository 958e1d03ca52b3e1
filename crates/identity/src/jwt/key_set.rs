//! An issuer's keys, held and renewed.
//!
//! A set is read again when it is old, and when a token names a key that is not in it, since issuers rotate; but only
//! after a pause, whatever callers send. One read runs at a time. A set that cannot be read again is believed for
//! `KEY_SET_STALE`; after that nobody is let in.

use std::sync::{Arc, PoisonError, RwLock};

use caribou_core::bounds;
use caribou_ports::identity::Unauthenticated;
use jsonwebtoken::Algorithm;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::key::{VerifyingKey, read_set};
use super::source::Reader;

/// Keys tried on one token: a name stands for one of them, or two of different kinds.
const MAX_TRIES: usize = 4;

/// The keys of one issuer.
pub(super) struct KeySet {
    reader: Reader,
    held: RwLock<Option<Arc<Held>>>,
    /// When a read was last begun; locked while one is on.
    reading: Mutex<Option<Instant>>,
}

/// A set as it was read.
struct Held {
    text: Vec<u8>,
    keys: Vec<VerifyingKey>,
    read_at: Instant,
}

/// What is known of the keys for one token.
pub(super) struct Found {
    /// Keys that may have signed it.
    pub(super) keys: Vec<VerifyingKey>,
    /// The set is another one than before, so what was believed by the old one is not any more.
    pub(super) is_new: bool,
}

impl KeySet {
    pub(super) fn new(reader: Reader) -> Self {
        Self { reader, held: RwLock::default(), reading: Mutex::default() }
    }

    /// The keys that may have signed a token whose header names these.
    pub(super) async fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<Found, Unauthenticated> {
        let mut is_new = false;
        let mut held = self.held();
        let age = held.as_ref().map(|held| held.read_at.elapsed());
        if age.is_none_or(|age| age >= bounds::KEY_SET_FRESH) {
            let usable = age.is_some_and(|age| age < bounds::KEY_SET_STALE);
            is_new |= self.renew(held.as_ref(), usable).await;
            held = self.held();
        }
        let mut keys = suitable(held.as_deref(), kid, algorithm);
        if keys.is_empty() && held.is_some() {
            is_new |= self.renew(held.as_ref(), false).await;
            held = self.held();
            keys = suitable(held.as_deref(), kid, algorithm);
        }
        let is_believed = |held: &Arc<Held>| held.read_at.elapsed() < bounds::KEY_SET_STALE;
        if !held.as_ref().is_some_and(is_believed) {
            return Err(Unauthenticated::Unavailable("the issuer's keys cannot be read".to_owned()));
        }
        Ok(Found { keys, is_new })
    }

    fn held(&self) -> Option<Arc<Held>> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the set again unless that is too soon, or somebody has done so since `seen`. Whoever can go on with what
    /// it has does not wait for another one's read. Answers whether the set is another one.
    async fn renew(&self, seen: Option<&Arc<Held>>, can_go_on: bool) -> bool {
        let mut begun = match self.reading.try_lock() {
            Ok(begun) => begun,
            Err(_) if can_go_on => return false,
            Err(_) => self.reading.lock().await,
        };
        let before = self.held();
        if before.as_ref().map(|held| held.read_at) != seen.map(|held| held.read_at) {
            return false;
        }
        let pause = if before.is_some() { self.reader.pause() } else { bounds::KEY_SET_RETRY };
        if begun.is_some_and(|begun| begun.elapsed() < pause) {
            return false;
        }
        *begun = Some(Instant::now());
        match self.read().await {
            Ok(new) => {
                let is_new = before.is_some_and(|before| before.text != new.text);
                *self.held.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(new));
                is_new
            }
            Err(why) => {
                tracing::warn!("the key set of the tokens' issuer cannot be read: {why}");
                false
            }
        }
    }

    /// Reads the set for the first time.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(super) async fn begin(&self) -> Result<(), String> {
        let mut begun = self.reading.lock().await;
        *begun = Some(Instant::now());
        let held = self.read().await?;
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(held));
        Ok(())
    }

    async fn read(&self) -> Result<Held, String> {
        let text = self.reader.read().await?;
        let keys = read_set(&text)?;
        Ok(Held { text, keys, read_at: Instant::now() })
    }
}

fn suitable(held: Option<&Held>, kid: Option<&str>, algorithm: Algorithm) -> Vec<VerifyingKey> {
    let keys = held.into_iter().flat_map(|held| &held.keys);
    keys.filter(|key| key.suits(kid, algorithm)).take(MAX_TRIES).cloned().collect()
}
