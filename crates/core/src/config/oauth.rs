//! The field `oauth` of a remote server (contract 1.5).
//!
//! Owns what it may hold; asking for tokens is the client's. A wrong field costs the server; what only makes each
//! token request fail later is a warning.

use std::time::Duration;

use super::fields::Fields;
use super::web_address;
use super::{ClientAuthentication, OAuth, OAuthGrant, Secret, UnknownOutcome};

const KEYS: [&str; 17] = [
    "enabled",
    "token_url",
    "grant_type",
    "client_id",
    "client_secret",
    "refresh_token",
    "scope",
    "audience",
    "token_field",
    "token_type_field",
    "expires_in_field",
    "default_token_type",
    "refresh_skew_seconds",
    "extra_token_params",
    "reuse_leeway_seconds",
    "unknown_outcome",
    "token_endpoint_auth_method",
];
const GRANTS: [(&str, OAuthGrant); 2] =
    [("client_credentials", OAuthGrant::ClientCredentials), ("refresh_token", OAuthGrant::RefreshToken)];

const UNKNOWN_OUTCOMES: [(&str, UnknownOutcome); 2] =
    [("probe_once", UnknownOutcome::ProbeOnce), ("reauth", UnknownOutcome::Reauth)];

/// The names of RFC 7591 §2.
const AUTHENTICATIONS: [(&str, ClientAuthentication); 2] = [
    ("client_secret_post", ClientAuthentication::SecretPost),
    ("client_secret_basic", ClientAuthentication::SecretBasic),
];

/// A token with less than this left counts as expiring (contract 1.5).
const DEFAULT_SKEW_SECONDS: u64 = 60;

pub(super) fn read(server: &Fields<'_>) -> Option<OAuth> {
    let oauth = server.get_set("oauth")?.object()?;
    oauth.note_extras(&KEYS);
    let text_or = |key: &str, default: &str| match oauth.get(key).map(|field| field.text()) {
        Some(Some(text)) => text.value.clone(),
        _ => default.to_owned(),
    };
    let secret = |key: &str| oauth.string(key).map(Secret::new);
    let read = OAuth {
        enabled: oauth.boolean("enabled", true),
        token_url: token_url(&oauth),
        grant: oauth.word("grant_type", &GRANTS).unwrap_or_default(),
        client_id: oauth.string("client_id"),
        client_secret: secret("client_secret"),
        refresh_token: secret("refresh_token"),
        scope: oauth.string("scope"),
        audience: oauth.string("audience"),
        token_field: text_or("token_field", "access_token"),
        token_type_field: text_or("token_type_field", "token_type"),
        expires_in_field: text_or("expires_in_field", "expires_in"),
        default_token_type: text_or("default_token_type", "Bearer"),
        refresh_skew: seconds(&oauth, "refresh_skew_seconds", DEFAULT_SKEW_SECONDS),
        extra_token_params: oauth
            .text_map("extra_token_params")
            .into_iter()
            .map(|(key, _, text)| (key.to_owned(), Secret::new(&*text.value)))
            .collect(),
        reuse_leeway: seconds(&oauth, "reuse_leeway_seconds", 0),
        unknown_outcome: oauth.word("unknown_outcome", &UNKNOWN_OUTCOMES).unwrap_or_default(),
        authentication: oauth.word("token_endpoint_auth_method", &AUTHENTICATIONS).unwrap_or_default(),
    };
    warn_of_missing_credentials(&oauth, &read);
    Some(read)
}

fn token_url(oauth: &Fields<'_>) -> String {
    const MEND: &str = "write the token endpoint's https:// address";
    let Some(text) = oauth.required("token_url", "oauth requires 'token_url' field", MEND) else {
        return String::new();
    };
    let url = text.value.trim();
    if !web_address::is_http(url)
        && let Some(field) = oauth.get("token_url")
    {
        field.error("must be an http:// or https:// address with a host", MEND);
    }
    url.to_owned()
}

fn seconds(oauth: &Fields<'_>, key: &'static str, default: u64) -> Duration {
    let default = Duration::from_secs(default);
    let Some(field) = oauth.get(key) else { return default };
    let Some(seconds) = field.whole() else { return default };
    u64::try_from(seconds).map_or_else(
        |_| {
            field.error("must be 0 or more seconds", "");
            default
        },
        Duration::from_secs,
    )
}

fn warn_of_missing_credentials(oauth: &Fields<'_>, read: &OAuth) {
    let empty = |secret: &Option<Secret>| secret.as_ref().is_none_or(|secret| secret.expose().is_empty());
    let (missing, needs) = match read.grant {
        OAuthGrant::ClientCredentials => (
            read.client_id.as_deref().unwrap_or_default().is_empty() || empty(&read.client_secret),
            "client_credentials needs both 'client_id' and 'client_secret': every token request will fail",
        ),
        OAuthGrant::RefreshToken => {
            (empty(&read.refresh_token), "refresh_token needs 'refresh_token': every token request will fail")
        }
    };
    if read.enabled && missing {
        oauth.warn(needs, "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::samples::{assert_dropped, assert_quiet, assert_warned, good};

    fn remote(oauth: &str) -> String {
        format!(r#""type": "http", "url": "http://h", "oauth": {oauth}"#)
    }

    #[test]
    fn the_defaults_are_those_of_the_contract() {
        // Contract 1.5.
        let server = good(&remote(r#"{"token_url": "https://t/", "client_id": "c", "client_secret": "$TOKEN"}"#));
        let oauth = server.oauth.as_ref().unwrap();
        assert!(oauth.enabled && oauth.grant == OAuthGrant::ClientCredentials);
        assert_eq!(oauth.client_secret.as_ref().map(Secret::expose), Some("tok-123456"));
        let fields = [&oauth.token_field, &oauth.token_type_field, &oauth.expires_in_field, &oauth.default_token_type];
        assert_eq!(fields, ["access_token", "token_type", "expires_in", "Bearer"]);
        assert_eq!(oauth.refresh_skew, Duration::from_secs(60));
        assert!(oauth.refresh_token.is_none() && oauth.extra_token_params.is_empty());
        // Architecture.md §10, credentials.
        assert_eq!((oauth.reuse_leeway, oauth.unknown_outcome), (Duration::ZERO, UnknownOutcome::ProbeOnce));
        assert_eq!(oauth.authentication, ClientAuthentication::SecretPost);
    }

    #[test]
    fn all_fields_are_read() {
        // Contract 1.5.
        let body = remote(
            r#"{"token_url": "https://t/", "grant_type": "refresh_token", "refresh_token": "r", "scope": "s",
                "audience": "a", "token_field": "at", "refresh_skew_seconds": 0, "extra_token_params": {"k": "v"},
                "reuse_leeway_seconds": 30, "unknown_outcome": "reauth",
                "token_endpoint_auth_method": "client_secret_basic"}"#,
        );
        assert_quiet(&[&body]);
        let server = good(&body);
        let oauth = server.oauth.as_ref().unwrap();
        assert_eq!((oauth.grant, oauth.refresh_skew), (OAuthGrant::RefreshToken, Duration::ZERO));
        assert_eq!((oauth.scope.as_deref(), oauth.audience.as_deref()), (Some("s"), Some("a")));
        assert_eq!((oauth.reuse_leeway.as_secs(), oauth.unknown_outcome), (30, UnknownOutcome::Reauth));
        assert_eq!(oauth.authentication, ClientAuthentication::SecretBasic);
        assert_eq!((oauth.token_field.as_str(), oauth.extra_token_params[0].1.expose()), ("at", "v"));
    }

    #[test]
    fn wrong_fields_cost_the_server() {
        // Contract 1.5.
        for (oauth, reason) in [
            ("{}", "oauth: oauth requires 'token_url' field"),
            (r#"{"token_url": "t"}"#, "oauth.token_url: must be an http:// or https:// address"),
            (r#"{"token_url": "https://t", "grant_type": "password"}"#, "oauth.grant_type: must be"),
            (r#"{"token_url": "https://t", "refresh_skew_seconds": -1}"#, "must be 0 or more"),
            (r#"{"token_url": "https://t", "refresh_skew_seconds": true}"#, "must be a whole number"),
            (r#"{"token_url": "https://t", "refresh_skew_seconds": 1.5}"#, "must be a whole number"),
            (r#"{"token_url": "https://t", "token_field": null}"#, "token_field: must be a string, not null"),
            (r#"{"token_url": "https://t", "extra_token_params": {"k": 1}}"#, "extra_token_params.k: must be a string"),
            (r#"{"token_url": "https://t", "reuse_leeway_seconds": -1}"#, "must be 0 or more"),
            (r#"{"token_url": "https://t", "unknown_outcome": "hope"}"#, "oauth.unknown_outcome: must be"),
            (
                r#"{"token_url": "https://t", "token_endpoint_auth_method": "none"}"#,
                "token_endpoint_auth_method: must be",
            ),
            (r#""x""#, "oauth: must be an object"),
        ] {
            assert_dropped(&[(&remote(oauth), reason)]);
        }
    }

    #[test]
    fn credentials_that_every_request_will_miss_are_warned_about() {
        // Contract 7.1: an error before any request.
        assert_warned(&[
            (&remote(r#"{"token_url": "https://t", "client_id": "c"}"#), "needs both 'client_id' and 'client_secret'"),
            (&remote(r#"{"token_url": "https://t", "grant_type": "refresh_token"}"#), "needs 'refresh_token'"),
        ]);
        assert_quiet(&[&remote(r#"{"enabled": false, "token_url": "https://t"}"#)]);
    }
}
