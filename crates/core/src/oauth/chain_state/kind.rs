//! How an access token was asked for (contract 7.5, access token reuse).

use std::fmt;

use sha2::{Digest, Sha256};

use crate::config::OAuth;

/// A SHA-256 over the further form fields and the names of the answer's fields. Who asks another way does not use the
/// token, and goes on with the chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AccessKind(pub [u8; 32]);

impl AccessKind {
    /// Of these settings.
    pub fn of(oauth: &OAuth) -> Self {
        let mut hash = Sha256::new();
        let mut part = |text: &str| {
            // Each part with its length, so that no two lists of parts read the same.
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        };
        [&oauth.token_field, &oauth.token_type_field, &oauth.expires_in_field, &oauth.default_token_type]
            .into_iter()
            .for_each(|name| part(name));
        // The form is one whatever the order in which its fields are written.
        let mut fields: Vec<_> = oauth.extra_token_params.iter().map(|(key, value)| (&**key, value.expose())).collect();
        fields.sort_unstable();
        fields.into_iter().for_each(|(key, value)| {
            part(key);
            part(value);
        });
        Self(hash.finalize().into())
    }
}

impl fmt::Debug for AccessKind {
    /// Not even the hash: a short field could be guessed from it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessKind")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::samples::oauth;

    #[test]
    fn only_what_is_asked_for_and_how_it_is_read_makes_another_kind() {
        // Contract 7.5, access token reuse.
        const BASE: &str = r#""client_id": "c", "extra_token_params": {"a": "1", "b": "2"}"#;
        let of = |members: &str| AccessKind::of(&oauth(members));
        assert_eq!(of(BASE), of(r#""client_id": "d", "extra_token_params": {"b": "2", "a": "1"}"#));
        for other in [r#""token_field": "t""#, r#""token_type_field": "t""#, r#""expires_in_field": "t""#] {
            assert_ne!(of(BASE), of(&format!("{BASE}, {other}")), "{other}");
        }
        assert_ne!(of(BASE), of(r#""client_id": "c", "extra_token_params": {"a": "1"}"#));
        assert_ne!(of(BASE), of(r#""client_id": "c", "default_token_type": "T", "extra_token_params": {}"#));
        assert_eq!(format!("{:?}", of(BASE)), "AccessKind", "invariant O3");
    }
}
