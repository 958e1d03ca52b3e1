//! Headers made of the secrets of one request (contract 8.5).
//!
//! Owns what becomes of a key that the request lacks. A secret that is empty is missing; one that cannot stand in a
//! header denies the call whatever `on_missing` says (contract 8.3).

use super::Denied;
use crate::config::{HeadersFromContext, OnMissing, Secret};
use crate::headers;
use crate::ids::ServerName;

/// The headers that `context` makes of `secrets`.
pub(super) fn headers(
    server: &ServerName,
    context: &HeadersFromContext,
    secrets: &[(String, Secret)],
) -> Result<Vec<(String, Secret)>, Denied> {
    if !context.enabled {
        return Ok(Vec::new());
    }
    let mut made = Vec::with_capacity(context.headers.len());
    let mut missing = Vec::new();
    for (name, key) in &context.headers {
        let secret = secrets.iter().find(|(held, _)| held == key).map_or("", |(_, secret)| secret.expose());
        match headers::legal(name, secret) {
            Ok("") => missing.push(key.clone()),
            Ok(value) => made.push((name.clone(), Secret::new(value))),
            Err(reason) => {
                return Err(Denied::IllegalSecret { server: server.to_string(), key: key.clone(), reason });
            }
        }
    }
    if missing.is_empty() || context.on_missing == OnMissing::Passthrough {
        return Ok(made);
    }
    missing.sort_unstable();
    missing.dedup();
    Err(Denied::MissingSecrets { server: server.to_string(), keys: missing })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(on_missing: OnMissing, secrets: &[(&str, &str)]) -> Result<Vec<(String, String)>, Denied> {
        let context = HeadersFromContext {
            enabled: true,
            headers: [("X-Tenant", "tenant"), ("X-Key", "key"), ("X-Again", "key")]
                .map(|(name, key)| (name.to_owned(), key.to_owned()))
                .into(),
            on_missing,
        };
        let secrets: Vec<_> = secrets.iter().map(|(key, value)| ((*key).to_owned(), Secret::new(*value))).collect();
        let made = headers(&ServerName::from("s"), &context, &secrets)?;
        Ok(made.into_iter().map(|(name, value)| (name, value.expose().to_owned())).collect())
    }

    #[test]
    fn every_key_that_is_there_becomes_its_headers() {
        // Contract 8.5, every key present.
        let made = asked(OnMissing::Deny, &[("key", "k\n"), ("tenant", "t"), ("other", "o")]).unwrap();
        let expected = [("X-Tenant", "t"), ("X-Key", "k"), ("X-Again", "k")];
        assert_eq!(made, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_missing_or_empty_key_denies_and_only_its_name_is_told_sorted() {
        // Contract 8.5, some key missing or empty, deny.
        let denied = asked(OnMissing::Deny, &[]).unwrap_err();
        assert_eq!(denied, Denied::MissingSecrets { server: "s".into(), keys: vec!["key".into(), "tenant".into()] });
        let denied = asked(OnMissing::Deny, &[("tenant", "hunter22"), ("key", " ")]).unwrap_err().to_string();
        assert!(denied.contains(": key;") && !denied.contains("tenant") && !denied.contains("hunter22"), "{denied}");
    }

    #[test]
    fn passthrough_sends_what_there_is() {
        // Contract 8.5, passthrough.
        let made = asked(OnMissing::Passthrough, &[("tenant", "t")]).unwrap();
        assert_eq!(made, [("X-Tenant".to_owned(), "t".to_owned())]);
        assert!(asked(OnMissing::Passthrough, &[]).unwrap().is_empty());
    }

    #[test]
    fn an_illegal_secret_denies_either_way_and_is_not_repeated() {
        // Contract 8.3, 8.5.
        for on_missing in [OnMissing::Deny, OnMissing::Passthrough] {
            let denied = asked(on_missing, &[("tenant", "t"), ("key", "hunter\r\nX-Evil: 1")]).unwrap_err();
            assert!(denied.to_string().contains("`key`") && !denied.to_string().contains("hunter"), "{denied}");
        }
    }

    #[test]
    fn a_block_that_is_switched_off_or_empty_asks_for_nothing() {
        // Contract 8.5, disabled, empty mapping.
        let off = HeadersFromContext {
            enabled: false,
            headers: vec![("X-Key".to_owned(), "key".to_owned())],
            on_missing: OnMissing::Deny,
        };
        let empty = HeadersFromContext { enabled: true, headers: Vec::new(), on_missing: OnMissing::Deny };
        for context in [off, empty] {
            assert!(headers(&ServerName::from("s"), &context, &[]).unwrap().is_empty());
        }
    }
}
