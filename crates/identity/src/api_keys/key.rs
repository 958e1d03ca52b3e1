//! How a key looks: `cbk_`, its id, `_`, and 32 random bytes in base64url.
//!
//! The id is no secret: it names the key in lists, logs and audit rows. What is stored is a hash of the whole key.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use caribou_core::config::Secret;

use crate::digest::digest;

/// Tells a key of ours from other secrets, for people and for scanners.
const PREFIX: &str = "cbk_";

/// Random bytes of an id: keys of one deployment never share one.
const ID_BYTES: usize = 8;

/// Random bytes of a secret: beyond guessing, even with the hash at hand.
const SECRET_BYTES: usize = 32;

/// What the hash is made under.
const LABEL: &[u8] = b"caribou api key 1";

/// A key that was just made. Its text is shown once and kept by nobody.
pub struct NewKey {
    /// Names it.
    pub id: String,
    /// What its holder presents.
    pub text: Secret,
    /// What is stored of it.
    pub hash: [u8; 32],
}

impl NewKey {
    /// Makes one.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub fn random() -> Result<Self, NoRandom> {
        let (mut id, mut secret) = ([0; ID_BYTES], [0; SECRET_BYTES]);
        getrandom::fill(&mut id).and_then(|()| getrandom::fill(&mut secret)).map_err(|_| NoRandom)?;
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = format!("{PREFIX}{id}_{}", URL_SAFE_NO_PAD.encode(secret));
        Ok(Self { id, hash: digest(LABEL, &text), text: Secret::new(text) })
    }
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewKey({})", self.id)
    }
}

/// There is no source of randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random bytes")]
pub struct NoRandom;

/// A key as somebody presents it.
pub(super) struct Presented<'k> {
    pub(super) id: &'k str,
    pub(super) hash: [u8; 32],
}

impl<'k> Presented<'k> {
    /// `None` when it cannot be a key of ours, which is known without a look at any.
    pub(super) fn read(text: &'k str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_id = id.len() == 2 * ID_BYTES && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_secret = URL_SAFE_NO_PAD.decode(secret).is_ok_and(|secret| secret.len() == SECRET_BYTES);
        (is_id && is_secret).then(|| Self { id, hash: digest(LABEL, text) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_as_it_was_made() {
        let [one, two] = [(); 2].map(|()| NewKey::random().unwrap());
        assert_ne!(one.id, two.id);
        let read = Presented::read(one.text.expose()).unwrap();
        assert_eq!((read.id, read.hash), (&*one.id, one.hash));
        assert!(one.text.expose().starts_with(&format!("cbk_{}_", one.id)));
        assert!(!format!("{one:?}").contains(one.text.expose()), "invariant O3");
    }

    #[test]
    fn what_is_no_key_is_known_by_its_form() {
        let key = NewKey::random().unwrap();
        let key = key.text.expose();
        for odd in ["", "cbk_", "cbk__", "hunter2", &key[4..], &key[..key.len() - 1], &format!("{key}A")] {
            assert!(Presented::read(odd).is_none(), "{odd}");
        }
        assert!(Presented::read(&key.to_uppercase()).is_none());
    }
}
