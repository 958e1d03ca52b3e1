//! Which calls may share an upstream session: those whose requests bring the same credentials (invariant P1).
//!
//! Owns the digest that tells credentials apart without holding them. It is keyed with a number of this process, so
//! that it means nothing anywhere else and cannot be tried out with guessed credentials.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::config::Secret;
use crate::ids::CredentialDigest;

/// What digests of this process are keyed with: random, made at the start, never stored.
#[derive(Clone)]
pub struct CredentialKey([u8; 32]);

impl CredentialKey {
    /// The key made of these random bytes.
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    /// The digest of these headers; `None` when there are none. Neither their order nor the case of their names
    /// matters. Lengths stand before all parts, so that no two lists run together into one text.
    pub(super) fn digest(&self, headers: &[(String, Secret)]) -> Option<CredentialDigest> {
        if headers.is_empty() {
            return None;
        }
        let mut sorted: Vec<(String, &str)> =
            headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.expose())).collect();
        sorted.sort_unstable();
        let mut hash = Sha256::new();
        hash.update(self.0);
        for part in sorted.iter().flat_map(|(name, value)| [name.as_str(), value]) {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let whole = hash.finalize();
        let mut digest = [0; 16];
        digest.copy_from_slice(&whole[..16]);
        Some(CredentialDigest(digest))
    }
}

impl CredentialKey {
    /// A mark on these texts in this order, which only who holds the key can make. Cut, so that nothing can be added to
    /// what was marked; and never that of headers, which begin with a length.
    pub fn mark(&self, texts: &[&str]) -> [u8; 16] {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update([u8::MAX; 8]);
        for text in texts {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        }
        let whole = hash.finalize();
        let mut mark = [0; 16];
        mark.copy_from_slice(&whole[..16]);
        mark
    }
}

impl fmt::Debug for CredentialKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_of_its_key_and_of_each_text_in_its_place() {
        let key = CredentialKey::new([1; 32]);
        assert_eq!(key.mark(&["a", "b"]), key.mark(&["a", "b"]));
        assert_ne!(key.mark(&["a", "b"]), CredentialKey::new([2; 32]).mark(&["a", "b"]));
        for other in [&["ab"][..], &["b", "a"], &["a", "b", ""], &["", "ab"], &[]] {
            assert_ne!(key.mark(&["a", "b"]), key.mark(other), "{other:?}");
        }
    }

    fn digest(key: u8, headers: &[(&str, &str)]) -> Option<CredentialDigest> {
        let headers: Vec<_> = headers.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect();
        CredentialKey::new([key; 32]).digest(&headers)
    }

    #[test]
    fn equal_credentials_share_and_different_ones_do_not() {
        // Invariant P1.
        let ann = digest(1, &[("Authorization", "Bearer a"), ("X-Tenant", "t")]);
        assert_eq!(digest(1, &[("x-tenant", "t"), ("AUTHORIZATION", "Bearer a")]), ann);
        for other in [
            digest(1, &[("Authorization", "Bearer b"), ("X-Tenant", "t")]),
            digest(1, &[("Authorization", "Bearer a")]),
            digest(1, &[("Authorization", "t"), ("X-Tenant", "Bearer a")]),
            digest(1, &[("Authorization", "Bearer ax"), ("-Tenant", "t")]),
            digest(2, &[("Authorization", "Bearer a"), ("X-Tenant", "t")]),
        ] {
            assert_ne!(other, ann);
        }
        assert_eq!(digest(1, &[]), None);
    }

    #[test]
    fn neither_key_nor_digest_is_printable() {
        // Invariant O3.
        let shown = format!("{:?} {:?}", CredentialKey::new([7; 32]), digest(7, &[("A", "b")]));
        assert_eq!(shown, "CredentialKey Some(CredentialDigest)");
    }
}
