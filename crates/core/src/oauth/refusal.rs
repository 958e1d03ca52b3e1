//! What a token endpoint that refused has said, and what follows from it (RFC 6749 §5.2).
//!
//! Owns what ends a chain: `invalid_grant` alone. A wrong client or a broken request says nothing about the refresh
//! token, which is kept (architecture.md §9, refresh errors).

use serde_json::{Map, Value};

use crate::config::OAuthGrant;

/// The error codes of RFC 6749 §4.1.2.1 and §5.2.
const CODES: [&str; 10] = [
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
    "access_denied",
    "unsupported_response_type",
    "server_error",
    "temporarily_unavailable",
];

/// Codes that only another configuration, or the provider's administrator, makes go away.
const NEEDS_PERSON: [&str; 6] = [
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
    "access_denied",
];

/// What the answer said. Without `Debug`: it is the provider's text, which may repeat what it was sent.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Refusal {
    /// Its `error`, if that is a text.
    pub error: Option<String>,
    /// Its `error_description`, if that is a text.
    pub description: Option<String>,
}

impl Refusal {
    /// Of the members of an answer; empty when they say nothing.
    pub fn read(members: &Map<String, Value>) -> Self {
        let text = |name| {
            members.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Self { error: text("error"), description: text("error_description") }
    }

    /// Its code, if it is one of RFC 6749.
    pub fn code(&self) -> Option<&str> {
        self.error.as_deref().filter(|error| CODES.contains(error))
    }
}

/// Whether a refusal with this code ends the chain: its refresh token is of no use any more.
pub fn ends_chain(grant: OAuthGrant, code: Option<&str>) -> bool {
    grant == OAuthGrant::RefreshToken && code == Some("invalid_grant")
}

/// Whether a person must act before a request with the same settings can succeed.
pub fn needs_person(code: Option<&str>) -> bool {
    code.is_some_and(|code| NEEDS_PERSON.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Refusal {
        Refusal::read(serde_json::from_str::<Value>(text).unwrap().as_object().unwrap())
    }

    #[test]
    fn only_texts_are_read_and_only_known_codes_are_codes() {
        let plain = read(r#"{"error": "invalid_grant", "error_description": " gone "}"#);
        assert_eq!((plain.code(), plain.description.as_deref()), (Some("invalid_grant"), Some("gone")));
        let own = read(r#"{"ok": false, "error": "invalid_client_id"}"#);
        assert_eq!((own.code(), own.error.as_deref()), (None, Some("invalid_client_id")));
        for mute in [r#"{"error": {"code": 1}, "error_description": 5}"#, r#"{"error": ""}"#, r#"{"error": null}"#] {
            assert!(read(mute) == Refusal::default(), "{mute}");
        }
    }

    #[test]
    fn only_invalid_grant_ends_a_chain_and_only_of_the_refresh_grant() {
        // Architecture.md §9, refresh errors; contract 7.5, invalid_grant.
        assert!(ends_chain(OAuthGrant::RefreshToken, Some("invalid_grant")));
        assert!(!ends_chain(OAuthGrant::ClientCredentials, Some("invalid_grant")));
        for code in CODES.into_iter().filter(|code| *code != "invalid_grant").map(Some).chain([None]) {
            assert!(!ends_chain(OAuthGrant::RefreshToken, code), "{code:?}");
        }
    }

    #[test]
    fn a_server_in_trouble_needs_nobody() {
        for code in [None, Some("server_error"), Some("temporarily_unavailable"), Some("invalid_request")] {
            assert!(!needs_person(code), "{code:?}");
        }
        assert!(needs_person(Some("invalid_client")) && needs_person(Some("invalid_grant")));
    }
}
