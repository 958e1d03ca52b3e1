//! Each row of contract 7.2.

use super::*;
use crate::oauth::samples::oauth;

const CLIENT: &str = r#""client_id": "c", "client_secret": "s""#;
const REFRESH: &str = r#""grant_type": "refresh_token", "refresh_token": "seed""#;

fn answer(members: &str, text: &str) -> Result<Given, String> {
    let parsed: Value = serde_json::from_str(text).expect(text);
    read(&oauth(members), parsed.as_object().expect(text)).map_err(|not| match not {
        NotGiven::Refused(refusal) => format!("{:?} {:?}", refusal.error, refusal.description),
        NotGiven::Unusable(why) => why,
    })
}

fn header(members: &str, text: &str) -> String {
    answer(members, text).expect(text).header.expose().to_owned()
}

#[test]
fn a_missing_or_falsy_token_is_named_by_its_field() {
    // Contract 7.2, token_field.
    for falsy in ["{}", r#"{"at": null}"#, r#"{"at": ""}"#, r#"{"at": 0}"#, r#"{"at": false}"#, r#"{"at": []}"#] {
        let why = answer(&format!("{CLIENT}, \"token_field\": \"at\""), falsy).unwrap_err();
        assert_eq!(why, "OAuth token response missing 'at'", "{falsy}");
    }
    let nested = answer(CLIENT, r#"{"ok": true, "authed_user": {"access_token": "at-SECRET"}}"#).unwrap_err();
    assert_eq!(nested, "OAuth token response missing 'access_token'");
    let number = answer(CLIENT, r#"{"access_token": 712345}"#).unwrap_err();
    assert!(number.contains("is no text") && !number.contains("712345"), "{number}");
}

#[test]
fn bearer_in_any_case_or_no_type_is_sent_as_bearer() {
    // Contract 7.2, token_type_field. Providers answer in lower case, and strict servers take `Bearer` alone.
    for kind in [r#""bearer""#, r#""BEARER""#, r#""Bearer""#, "null", r#""""#, "false"] {
        assert_eq!(header(CLIENT, &format!(r#"{{"access_token": "t", "token_type": {kind}}}"#)), "Bearer t", "{kind}");
    }
    assert_eq!(header(CLIENT, r#"{"access_token": "t"}"#), "Bearer t");
    let named = format!(r#"{CLIENT}, "token_type_field": "kind", "default_token_type": "token""#);
    assert_eq!(header(&named, r#"{"access_token": "t", "kind": "bearer"}"#), "Bearer t");
}

#[test]
fn a_default_type_is_used_as_it_is_written() {
    // Contract 7.2, default_token_type.
    let own = format!(r#"{CLIENT}, "default_token_type": "token""#);
    assert_eq!(header(&own, r#"{"access_token": "t"}"#), "token t");
    assert_eq!(header(&own, r#"{"access_token": "t", "token_type": "Token"}"#), "token t");
    let lower = format!(r#"{CLIENT}, "default_token_type": "bearer""#);
    assert_eq!(header(&lower, r#"{"access_token": "t", "token_type": ""}"#), "bearer t");
}

#[test]
fn a_type_that_cannot_be_sent_is_refused_without_the_token() {
    for kind in ["DPoP", "mac", "N_A"] {
        let why = answer(CLIENT, &format!(r#"{{"access_token": "at-SECRET", "token_type": "{kind}"}}"#)).unwrap_err();
        assert!(why.contains("another type than Bearer") && !why.contains("SECRET"), "{why}");
    }
    assert!(answer(CLIENT, r#"{"access_token": "t", "token_type": ["bearer"]}"#).unwrap_err().contains("no text"));
}

#[test]
fn the_life_time_is_what_int_makes_of_it() {
    // Contract 7.2, expires_in_field.
    for (value, seconds) in [
        ("60", 60),
        ("60.9", 60),
        (r#"" 60 ""#, 60),
        (r#""+60""#, 60),
        (r#""1_000""#, 1_000),
        ("0", 1),
        ("-5", 1),
        (r#""-5""#, 1),
        ("true", 1),
        ("false", 1),
        ("null", 3_600),
        (r#""""#, 3_600),
        (r#""60.0""#, 3_600),
        (r#""1__0""#, 3_600),
        (r#""soon""#, 3_600),
        ("[60]", 3_600),
        ("{}", 3_600),
        ("1e300", MAX_SECONDS),
        (r#""99999999999999999999""#, MAX_SECONDS),
        (r#""-99999999999999999999""#, 1),
    ] {
        let given = answer(CLIENT, &format!(r#"{{"access_token": "t", "expires_in": {value}}}"#)).expect(value);
        assert_eq!(given.expires_in, seconds, "{value}");
    }
    assert_eq!(answer(CLIENT, r#"{"access_token": "t"}"#).map(|given| given.expires_in), Ok(3_600));
    let named = format!(r#"{CLIENT}, "expires_in_field": "ttl""#);
    let given = answer(&named, r#"{"access_token": "t", "ttl": 5, "expires_in": 9}"#).unwrap();
    assert_eq!(given.expires_in, 5);
}

#[test]
fn a_successor_counts_only_for_the_refresh_grant_and_only_as_a_text() {
    // Contract 7.2, refresh_token. Providers that do not rotate leave it out, null or empty: the old one stays.
    let successor = |members: &str, text: &str| {
        answer(members, text).expect(text).refresh_token.map(|token| token.expose().to_owned())
    };
    let named = |value: &str| format!(r#"{{"access_token": "t", "refresh_token": {value}}}"#);
    assert_eq!(successor(REFRESH, &named(r#""rt-2""#)).as_deref(), Some("rt-2"));
    assert_eq!(successor(CLIENT, &named(r#""rt-2""#)), None);
    for none in ["null", r#""""#, "5", r#"["rt-2"]"#] {
        assert_eq!(successor(REFRESH, &named(none)), None, "{none}");
    }
    assert_eq!(successor(REFRESH, r#"{"access_token": "t"}"#), None);
}

#[test]
fn a_scope_in_any_form_is_ignored() {
    for scope in [r#"["a", "b"]"#, r#""a,b""#, "null", "5", "{}"] {
        let text = format!(r#"{{"access_token": "t", "scope": {scope}, "more": [{{}}]}}"#);
        assert_eq!(header(CLIENT, &text), "Bearer t", "{scope}");
    }
}

#[test]
fn an_error_with_a_status_of_success_is_an_oauth_error_unless_a_token_stands_beside_it() {
    let text = r#"{"ok": false, "error": "invalid_client_id", "error_description": "no such client"}"#;
    assert_eq!(answer(CLIENT, text).unwrap_err(), r#"Some("invalid_client_id") Some("no such client")"#);
    assert_eq!(header(CLIENT, r#"{"access_token": "t", "error": null}"#), "Bearer t");
    assert_eq!(header(CLIENT, r#"{"access_token": "t", "error": "none"}"#), "Bearer t");
}

#[test]
fn an_illegal_header_is_refused_as_a_whole_and_without_its_value() {
    // Contract 7.2, header value; 8.3.
    for token in
        [r"at-SECRET\n", r"at-SECRET\r\nX-Evil: 1", r"at-SECRET ", r"at-SECRET\t", r"at-SECRETü", r"\u0000at-SECRET"]
    {
        let why = answer(CLIENT, &format!(r#"{{"access_token": "{token}"}}"#)).unwrap_err();
        assert!(why.contains("cannot be sent") && !why.contains("SECRET"), "{token}: {why}");
    }
    // Not at the edge of the rendered value.
    assert_eq!(header(CLIENT, r#"{"access_token": " t"}"#), "Bearer  t");
    assert_eq!(header(CLIENT, r#"{"access_token": "a\tb c"}"#), "Bearer a\tb c");
    let edge = answer(&format!(r#"{CLIENT}, "default_token_type": """#), r#"{"access_token": "t"}"#).unwrap_err();
    assert!(edge.contains("begins or ends with a blank"), "{edge}");
}
