//! The form of a token request (contract 7.1), and the client that is not in it.
//!
//! Owns its fields and who has the last word over each. A request that is bound to fail is not made: it would show
//! half a credential to the endpoint for nothing.

use crate::config::{ClientAuthentication, OAuth, OAuthGrant, Secret};

/// Why no token can be asked for. Names the fields that are missing, never a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotAsk {
    /// The client-credentials grant without a whole client.
    #[error("OAuth client_credentials requires client_id and client_secret; nothing was sent; set both under `oauth`")]
    NoClient,
    /// The refresh grant without a refresh token.
    #[error("OAuth refresh_token grant requires refresh_token; nothing was sent; set it under `oauth`")]
    NoRefreshToken,
}

/// The fields of a token request, in the order they are sent; `refresh_token` is the one to present.
///
/// What `extra_token_params` says of a field that the grant itself needs is overwritten: an operator cannot turn one
/// grant into another by accident.
///
/// # Errors
/// The grant lacks what it needs; nothing must be sent then.
pub fn form(oauth: &OAuth, refresh_token: Option<&Secret>) -> Result<Vec<(String, Secret)>, CannotAsk> {
    let client_id = client_id(oauth).map(Secret::new);
    let client_secret = set(oauth.client_secret.as_ref());
    let is_in_form = basic(oauth).is_none();
    let refresh_token = set(refresh_token);
    let mut form: Vec<(String, Secret)> = Vec::new();
    for (name, value) in &oauth.extra_token_params {
        put(&mut form, name, value.clone());
    }
    put(&mut form, "grant_type", Secret::new(oauth.grant.as_str()));
    for (name, value) in [("scope", &oauth.scope), ("audience", &oauth.audience)] {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
            put(&mut form, name, Secret::new(value));
        }
    }
    match oauth.grant {
        OAuthGrant::ClientCredentials => {
            let (Some(id), Some(secret)) = (client_id, client_secret) else { return Err(CannotAsk::NoClient) };
            if is_in_form {
                put(&mut form, "client_id", id);
                put(&mut form, "client_secret", secret);
            }
        }
        OAuthGrant::RefreshToken => {
            put(&mut form, "refresh_token", refresh_token.ok_or(CannotAsk::NoRefreshToken)?);
            for (name, value) in [("client_id", client_id), ("client_secret", client_secret)] {
                if let Some(value) = value.filter(|_| is_in_form) {
                    put(&mut form, name, value);
                }
            }
        }
    }
    Ok(form)
}

/// The id and the secret of a client that proves who it is by HTTP Basic. One without a secret has nothing to prove:
/// its id stays in the form (RFC 6749 §2.3.1, §3.2.1).
pub fn basic(oauth: &OAuth) -> Option<(&str, Secret)> {
    let is_basic = oauth.authentication == ClientAuthentication::SecretBasic;
    is_basic.then(|| Some((client_id(oauth)?, set(oauth.client_secret.as_ref())?)))?
}

fn client_id(oauth: &OAuth) -> Option<&str> {
    oauth.client_id.as_deref().filter(|id| !id.is_empty())
}

/// An empty value is none: an empty credential is never sent.
fn set(value: Option<&Secret>) -> Option<Secret> {
    value.filter(|value| !value.expose().is_empty()).cloned()
}

/// Sets a field, over an earlier one of the same name.
fn put(form: &mut Vec<(String, Secret)>, name: &str, value: Secret) {
    match form.iter_mut().find(|(known, _)| known == name) {
        Some((_, old)) => *old = value,
        None => form.push((name.to_owned(), value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::samples::oauth;

    fn sent(oauth: &OAuth, refresh_token: Option<&str>) -> Result<Vec<String>, CannotAsk> {
        let form = form(oauth, refresh_token.map(Secret::new).as_ref())?;
        Ok(form.iter().map(|(name, value)| format!("{name}={}", value.expose())).collect())
    }

    #[test]
    fn client_credentials_send_the_client_and_what_is_asked_for() {
        // Contract 7.1, body and client_credentials.
        let bare = oauth(r#""client_id": "c", "client_secret": "s""#);
        assert_eq!(sent(&bare, None).unwrap(), ["grant_type=client_credentials", "client_id=c", "client_secret=s"]);
        let whole = oauth(r#""client_id": "c", "client_secret": "s", "scope": "a b", "audience": "u""#);
        assert_eq!(
            sent(&whole, None).unwrap(),
            ["grant_type=client_credentials", "scope=a b", "audience=u", "client_id=c", "client_secret=s"]
        );
    }

    #[test]
    fn extra_params_come_first_and_never_win() {
        // Contract 7.1, body order of authority.
        let extras = r#""extra_token_params": {"grant_type": "password", "resource": "r", "scope": "x", "audience": "y",
            "client_id": "evil", "client_secret": "evil", "refresh_token": "evil"}"#;
        let client = oauth(&format!(r#""client_id": "c", "client_secret": "s", "scope": "a", {extras}"#));
        assert_eq!(
            sent(&client, None).unwrap(),
            // Neither `audience` nor `refresh_token` is a field of this request otherwise: the operator may add them.
            [
                "grant_type=client_credentials",
                "resource=r",
                "scope=a",
                "audience=y",
                "client_id=c",
                "client_secret=s",
                "refresh_token=evil"
            ]
        );
        let refresh = oauth(&format!(r#""grant_type": "refresh_token", {extras}"#));
        let form = sent(&refresh, Some("rt")).unwrap();
        assert!(form.contains(&"grant_type=refresh_token".to_owned()) && form.contains(&"refresh_token=rt".to_owned()));
    }

    #[test]
    fn client_credentials_without_a_whole_client_ask_nothing() {
        // Contract 7.1, client_credentials.
        for half in [
            r#""client_id": "c""#,
            r#""client_secret": "s""#,
            r#""client_id": "", "client_secret": "s""#,
            r#""client_id": "c", "client_secret": """#,
        ] {
            assert_eq!(sent(&oauth(half), None), Err(CannotAsk::NoClient), "{half}");
        }
    }

    #[test]
    fn a_client_of_http_basic_stands_in_no_form() {
        // RFC 6749 §2.3.1: never in two ways at once.
        const BASIC: &str = r#""token_endpoint_auth_method": "client_secret_basic", "client_id": "c""#;
        let client = |oauth: &OAuth| basic(oauth).map(|(id, secret)| format!("{id}:{}", secret.expose()));
        let whole = oauth(&format!(r#"{BASIC}, "client_secret": "s""#));
        assert_eq!(sent(&whole, None).unwrap(), ["grant_type=client_credentials"]);
        assert_eq!(client(&whole).as_deref(), Some("c:s"));
        let refresh = oauth(&format!(r#"{BASIC}, "client_secret": "s", "grant_type": "refresh_token""#));
        assert_eq!(sent(&refresh, Some("rt")).unwrap(), ["grant_type=refresh_token", "refresh_token=rt"]);
        let public = oauth(&format!(r#"{BASIC}, "grant_type": "refresh_token""#));
        assert_eq!(sent(&public, Some("rt")).unwrap(), ["grant_type=refresh_token", "refresh_token=rt", "client_id=c"]);
        assert_eq!((client(&public), client(&oauth(r#""client_id": "c", "client_secret": "s""#))), (None, None));
        assert_eq!(sent(&oauth(BASIC), None), Err(CannotAsk::NoClient));
    }

    #[test]
    fn a_refresh_sends_the_token_given_and_the_client_only_if_set() {
        // Contract 7.1, refresh_token.
        let public = oauth(r#""grant_type": "refresh_token", "refresh_token": "seed""#);
        assert_eq!(sent(&public, Some("rt-2")).unwrap(), ["grant_type=refresh_token", "refresh_token=rt-2"]);
        let whole = oauth(r#""grant_type": "refresh_token", "client_id": "c", "client_secret": "s""#);
        assert_eq!(
            sent(&whole, Some("rt")).unwrap(),
            ["grant_type=refresh_token", "refresh_token=rt", "client_id=c", "client_secret=s"]
        );
        for none in [None, Some("")] {
            assert_eq!(sent(&whole, none), Err(CannotAsk::NoRefreshToken));
        }
    }
}
