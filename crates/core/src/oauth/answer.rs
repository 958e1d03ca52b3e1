//! What a successful answer of a token endpoint holds (contract 7.2).
//!
//! Owns the rendered header, the life time and the successor of the refresh token. Members that nobody asked for are
//! ignored whatever their form: `scope` comes as a text, a list, a number. What is wrong is named by its field and
//! never by its value (invariant O3).

use serde_json::{Map, Value};

use super::refusal::Refusal;
use crate::config::{OAuth, OAuthGrant, Secret};
use crate::headers;

/// The only scheme that goes by a token alone (RFC 6750); DPoP and MAC sign each request.
const BEARER: &str = "Bearer";

/// The life of a token whose answer tells none that can be read (contract 7.2).
const DEFAULT_SECONDS: u64 = 3_600;

/// The longest life that is believed: 136 years, far beyond any, so that no sum with it overflows.
const MAX_SECONDS: u64 = u32::MAX as u64;

/// What the endpoint gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The whole value of `Authorization`.
    pub header: Secret,
    /// Seconds until the token expires, at least 1.
    pub expires_in: u64,
    /// The successor of the refresh token; `None` = the one presented stays.
    pub refresh_token: Option<Secret>,
}

/// Why a successful answer gives no token.
#[derive(Clone, PartialEq, Eq)]
pub enum NotGiven {
    /// It is an OAuth error with a status of success.
    Refused(Refusal),
    /// It holds none that can be used; the sentence repeats nothing of it.
    Unusable(String),
}

/// Reads the members of an answer with a status of success.
///
/// # Errors
/// There is no usable token in it.
pub fn read(oauth: &OAuth, members: &Map<String, Value>) -> Result<Given, NotGiven> {
    let Some(token) = members.get(&oauth.token_field).filter(|value| is_truthy(value)) else {
        let refusal = Refusal::read(members);
        return Err(match refusal.error {
            Some(_) => NotGiven::Refused(refusal),
            None => NotGiven::Unusable(format!("OAuth token response missing '{}'", oauth.token_field)),
        });
    };
    let Some(token) = token.as_str() else {
        return Err(NotGiven::Unusable(format!("'{}' of the OAuth token response is no text", oauth.token_field)));
    };
    let header = format!("{} {token}", scheme(oauth, members.get(&oauth.token_type_field))?);
    // The value as a whole: a blank within it is legal, one at its edge is not (contract 8.3).
    match headers::legal("Authorization", &header) {
        Ok(legal) if legal == header => {}
        Ok(_) => return Err(unusable("the token cannot be sent: it begins or ends with a blank or a line break")),
        Err(illegal) => return Err(NotGiven::Unusable(format!("the token cannot be sent: {illegal}"))),
    }
    Ok(Given {
        header: Secret::new(header),
        expires_in: life(members.get(&oauth.expires_in_field)),
        refresh_token: successor(oauth, members),
    })
}

/// The scheme the token is sent with.
fn scheme<'o>(oauth: &'o OAuth, named: Option<&Value>) -> Result<&'o str, NotGiven> {
    let configured = oauth.default_token_type.as_str();
    let named = match named.filter(|value| is_truthy(value)) {
        None => return Ok(configured),
        Some(Value::String(named)) => named.trim(),
        Some(_) => {
            return Err(NotGiven::Unusable(format!("'{}' of the answer is no text", oauth.token_type_field)));
        }
    };
    if named.eq_ignore_ascii_case(BEARER) {
        // Providers write it in any case; strict servers take only this one.
        Ok(BEARER)
    } else if named.eq_ignore_ascii_case(configured) {
        Ok(configured)
    } else {
        Err(unusable(
            "the provider gives tokens of another type than Bearer, such as DPoP, which Caribou cannot send; \
             have it issue bearer tokens",
        ))
    }
}

/// The seconds a token lives: what Python's `int()` makes of the value, as the contract has it.
fn life(value: Option<&Value>) -> u64 {
    let seconds = match value {
        Some(Value::Number(number)) => whole(number),
        Some(Value::Bool(yes)) => Some(i64::from(*yes)),
        Some(Value::String(text)) => whole_text(text.trim()),
        _ => None,
    };
    match seconds {
        Some(seconds) => u64::try_from(seconds).unwrap_or(0).clamp(1, MAX_SECONDS),
        None => DEFAULT_SECONDS,
    }
}

fn whole(number: &serde_json::Number) -> Option<i64> {
    // A float loses its fraction; `as` saturates, and what is beyond the bounds is clamped anyway.
    #[expect(clippy::cast_possible_truncation, reason = "saturates")]
    let of_float = |float: f64| float as i64;
    number.as_i64().or_else(|| number.as_f64().map(of_float))
}

/// A whole number in words of digits: a sign, and single underscores between digits, are allowed.
fn whole_text(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || digits.split('_').any(|part| part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    let limit = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    Some(text.replace('_', "").parse().unwrap_or(limit))
}

/// The next refresh token: only of the refresh grant, only under its own name, only a text that is not empty.
pub fn successor(oauth: &OAuth, members: &Map<String, Value>) -> Option<Secret> {
    let token = members.get("refresh_token").and_then(Value::as_str).filter(|token| !token.is_empty());
    token.filter(|_| oauth.grant == OAuthGrant::RefreshToken).map(Secret::new)
}

/// Whether the value counts as there: not null, false, zero or empty.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(yes) => *yes,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

fn unusable(why: &str) -> NotGiven {
    NotGiven::Unusable(why.to_owned())
}

#[cfg(test)]
mod tests;
