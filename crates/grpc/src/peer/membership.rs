//! How the members of a cluster know one another when certificates do not say it: a secret that all of them hold.
//!
//! It stands in the metadatum `authorization` of every request. Never printed (invariant O3): the header is marked as
//! sensitive, and what is compared are digests, in the same time whatever they are.

use caribou_core::config::Secret;
use http::{HeaderMap, HeaderValue, header};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// What a member shows, and asks of the others.
#[derive(Clone)]
pub struct Membership {
    shown: Option<HeaderValue>,
    digest: Option<[u8; 32]>,
}

impl Membership {
    /// Members hold this secret; `None` = their certificates alone say who they are. One that no header can hold is
    /// held by nobody: all are refused.
    pub fn new(secret: Option<&Secret>) -> Self {
        let shown = secret.and_then(|secret| HeaderValue::from_str(&format!("Bearer {}", secret.expose())).ok());
        let shown = shown.map(|mut shown| {
            shown.set_sensitive(true);
            shown
        });
        Self { shown, digest: secret.map(|secret| digest(secret.expose().as_bytes())) }
    }

    /// Puts it on a request.
    pub(super) fn show(&self, headers: &mut HeaderMap) {
        if let Some(shown) = &self.shown {
            headers.insert(header::AUTHORIZATION, shown.clone());
        }
    }

    /// Whether a request with these headers comes from a member.
    pub(super) fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(expected) = &self.digest else { return true };
        let shown = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let shown = shown.and_then(|shown| shown.strip_prefix(b"Bearer ")).unwrap_or_default();
        digest(shown).ct_eq(expected).into()
    }
}

fn digest(text: &[u8]) -> [u8; 32] {
    Sha256::digest(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn membership(secret: &str) -> Membership {
        Membership::new(Some(&Secret::new(secret)))
    }

    #[test]
    fn only_those_with_the_same_secret_are_members_and_it_is_not_printed() {
        // Invariant O3.
        let mut headers = HeaderMap::new();
        membership("hunter2").show(&mut headers);
        assert!(membership("hunter2").admits(&headers));
        assert!(!membership("hunter3").admits(&headers) && !membership("hunter2").admits(&HeaderMap::new()));
        assert!(!membership("").admits(&headers), "no secret is the empty one");
        assert!(!format!("{headers:?}").contains("hunter2"), "{headers:?}");
    }

    #[test]
    fn certificates_alone_may_say_who_is_a_member() {
        let mut headers = HeaderMap::new();
        Membership::new(None).show(&mut headers);
        assert!(headers.is_empty() && Membership::new(None).admits(&headers));
    }

    #[test]
    fn a_secret_that_no_header_can_hold_admits_nobody() {
        let mut headers = HeaderMap::new();
        membership("a\nb").show(&mut headers);
        assert!(headers.is_empty() && !membership("a\nb").admits(&headers));
    }
}
