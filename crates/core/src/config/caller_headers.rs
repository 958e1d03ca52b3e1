//! The fields `user_auth` and `headers_from_context`: headers that differ by caller (contract 1.6, 1.7).
//!
//! Owns what they may hold. A header that could never be sent costs the server, since going on without a credential
//! would act with somebody else's; a value that is empty or illegal only denies its own user (contract 8.3, 8.4), so
//! it is a warning here.

use std::collections::HashSet;

use super::fields::{Field, Fields};
use super::{HeadersFromContext, OnMissing, Secret, UserAuth};
use crate::headers;
use crate::ids::DEFAULT_SCOPE_PART;

const ON_MISSING: [(&str, OnMissing); 2] = [("deny", OnMissing::Deny), ("passthrough", OnMissing::Passthrough)];

pub(super) fn user_auth(server: &Fields<'_>) -> Option<UserAuth> {
    let fields = server.get_set("user_auth")?.object()?;
    fields.note_extras(&["enabled", "header", "users", "on_missing"]);
    Some(UserAuth {
        enabled: fields.boolean("enabled", true),
        header: header(&fields),
        users: users(&fields),
        on_missing: fields.word("on_missing", &ON_MISSING).unwrap_or_default(),
    })
}

fn header(fields: &Fields<'_>) -> String {
    let Some(field) = fields.get("header") else { return "Authorization".to_owned() };
    let Some(text) = field.text() else { return String::new() };
    check_name(&field, &text.value);
    text.value.clone()
}

fn users(fields: &Fields<'_>) -> Vec<(String, Secret)> {
    let mut users = Vec::new();
    for (user, field, text) in fields.text_map("users") {
        match headers::legal("Authorization", &text.value) {
            Ok("") => field.warn("is empty: this user is denied", ""),
            Ok(_) => {}
            Err(illegal) => field.warn(&format!("{illegal}: this user is denied"), ""),
        }
        if user == DEFAULT_SCOPE_PART {
            field.warn(
                "is the user of every call that names none: whoever gives no `user_id` acts with this credential",
                "name real users, or put a credential that all may use under `headers`",
            );
        }
        users.push((user.to_owned(), Secret::new(&*text.value)));
    }
    users
}

pub(super) fn headers_from_context(server: &Fields<'_>) -> Option<HeadersFromContext> {
    let fields = server.get_set("headers_from_context")?.object()?;
    fields.note_extras(&["enabled", "headers", "on_missing"]);
    let mut seen = HashSet::new();
    let mut headers = Vec::new();
    for (name, field, key) in fields.text_map("headers") {
        check_name(&field, name);
        check_spelling(&mut seen, &field, name);
        if key.value.trim().is_empty() {
            field.error("must name a key of the request's secrets, and it is blank", "");
        }
        headers.push((name.to_owned(), key.value.clone()));
    }
    Some(HeadersFromContext {
        enabled: fields.boolean("enabled", true),
        headers,
        on_missing: fields.word("on_missing", &ON_MISSING).unwrap_or_default(),
    })
}

/// Refuses a name that no header can have, or that only the protocol may write.
fn check_name(field: &Field<'_>, name: &str) {
    if name.trim().is_empty() {
        field.error("the header name must not be blank", "");
    } else if headers::legal(name, "").is_err() {
        field.error("the header name is not an HTTP token", "use letters, digits and hyphens");
    } else if headers::is_protocol_header(name) {
        field.error("Caribou writes this header itself", "choose another header");
    }
}

/// Refuses the second spelling of one header (contract 1.2, 1.7).
pub(super) fn check_spelling(seen: &mut HashSet<String>, field: &Field<'_>, name: &str) -> bool {
    let new = seen.insert(name.to_ascii_lowercase());
    if !new {
        field.error("one header stands here in two spellings", "keep one: upper and lower case are the same header");
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::samples::{assert_dropped, assert_quiet, assert_warned, good};

    fn remote(field: &str) -> String {
        format!(r#""type": "http", "url": "http://h", {field}"#)
    }

    #[test]
    fn user_auth_takes_the_defaults_and_fields_of_the_contract() {
        // Contract 1.6.
        let server = good(&remote(r#""user_auth": {"users": {"ann": "$TOKEN", "bob": "Bearer b"}}"#));
        let auth = server.user_auth.as_ref().unwrap();
        assert!(auth.enabled && auth.header == "Authorization" && auth.on_missing == OnMissing::Deny);
        assert_eq!((auth.users[0].0.as_str(), auth.users[0].1.expose()), ("ann", "tok-123456"));
        assert_quiet(&[&remote(r#""user_auth": {"enabled": false, "header": "X-Key", "on_missing": "passthrough"}"#)]);
        assert!(good(&remote(r#""user_auth": null"#)).user_auth.is_none());
    }

    #[test]
    fn a_user_auth_that_cannot_work_costs_the_server() {
        // Contract 1.6.
        for (auth, reason) in [
            (r#"{"header": " \t"}"#, "user_auth.header: the header name must not be blank"),
            (r#"{"header": "X Key"}"#, "not an HTTP token"),
            (r#"{"header": "Content-Type"}"#, "Caribou writes this header itself"),
            (r#"{"on_missing": "allow"}"#, r#"on_missing: must be "deny" or "passthrough""#),
            (r#"{"users": {"u": 1}}"#, "users.u: must be a string"),
            ("[]", "user_auth: must be an object"),
        ] {
            assert_dropped(&[(&remote(&format!(r#""user_auth": {auth}"#)), reason)]);
        }
    }

    #[test]
    fn a_value_that_denies_one_user_is_a_warning() {
        // Contract 8.3, 8.4.
        assert_warned(&[
            (&remote(r#""user_auth": {"users": {"u": "$UNSET"}}"#), "users.u: is empty: this user is denied"),
            (&remote(r#""user_auth": {"users": {"u": "a\nb"}}"#), "this user is denied"),
            (
                &remote(r#""user_auth": {"users": {"default": "v"}}"#),
                "users.default: is the user of every call that names none",
            ),
            (&remote(r#""user_auth": {"user": {}}"#), "did you mean \"users\"?"),
        ]);
    }

    #[test]
    fn headers_from_context_map_names_to_keys() {
        // Contract 1.7.
        let server = good(&remote(r#""headers_from_context": {"headers": {"X-A": "key_a", "X-B": "key_b"}}"#));
        let context = server.headers_from_context.as_ref().unwrap();
        assert!(context.enabled && context.on_missing == OnMissing::Deny);
        assert_eq!(context.headers, [("X-A".to_owned(), "key_a".to_owned()), ("X-B".to_owned(), "key_b".to_owned())]);
        for (headers, reason) in [
            (r#"{" ": "k"}"#, "the header name must not be blank"),
            (r#"{"A": " "}"#, "headers.A: must name a key"),
            (r#"{"A": 1}"#, "headers.A: must be a string"),
            (r#"{"A": "k", "a": "k"}"#, "headers.a: one header stands here in two spellings"),
        ] {
            assert_dropped(&[(&remote(&format!(r#""headers_from_context": {{"headers": {headers}}}"#)), reason)]);
        }
    }
}
