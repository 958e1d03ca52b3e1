//! Which settings make a chain of tokens the same chain (contract 7.5, row identity).

use std::fmt;

use sha2::{Digest, Sha256};

use crate::config::OAuth;

/// What a chain was started from, as a SHA-256: endpoint, client id, grant, scope, audience and the configured refresh
/// token. When one of them changes the chain starts from the configured token; a changed client secret, further form
/// fields or other names in the answer leave it as it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// Of these settings.
    pub fn of(oauth: &OAuth) -> Self {
        let mut hash = Sha256::new();
        for part in [
            Some(oauth.token_url.as_str()),
            oauth.client_id.as_deref(),
            Some(oauth.grant.as_str()),
            oauth.scope.as_deref(),
            oauth.audience.as_deref(),
            oauth.refresh_token.as_ref().map(|token| token.expose()),
        ] {
            // Each part with its length, so that no two lists of parts read the same; absent is not empty.
            hash.update([u8::from(part.is_some())]);
            hash.update((part.unwrap_or_default().len() as u64).to_be_bytes());
            hash.update(part.unwrap_or_default());
        }
        Self(hash.finalize().into())
    }
}

impl fmt::Debug for Fingerprint {
    /// Not even the hash: a short token could be guessed from it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::samples::oauth;

    #[test]
    fn a_chain_starts_anew_when_what_it_stands_for_changes_and_only_then() {
        // Contract 7.5, seed, any of these changed, only client_secret changed.
        const BASE: &str = r#""grant_type": "refresh_token", "refresh_token": "seed-1", "client_id": "c""#;
        let of = |members: &str| Fingerprint::of(&oauth(members));
        for same in [r#""client_secret": "s""#, r#""extra_token_params": {"k": "v"}"#, r#""token_field": "t""#] {
            assert_eq!(of(BASE), of(&format!("{BASE}, {same}")), "{same}");
        }
        for other in [r#""scope": "s""#, r#""scope": """#, r#""audience": "s""#] {
            assert_ne!(of(BASE), of(&format!("{BASE}, {other}")), "{other}");
        }
        assert_ne!(of(BASE), of(&BASE.replace("seed-1", "seed-2")));
        assert_ne!(of(BASE), of(&BASE.replace("\"c\"", "\"d\"")));
        assert_ne!(of(BASE), of(&BASE.replace("\"grant_type\": \"refresh_token\"", "\"enabled\": true")));
    }

    #[test]
    fn a_fingerprint_prints_nothing() {
        // Invariant O3.
        assert_eq!(format!("{:?}", Fingerprint::of(&oauth(r#""client_id": "c""#))), "Fingerprint");
    }
}
