//! Takes the body of an answer apart.
//!
//! Owns how it is spelt: a form where its type says so (some providers answer in the form they are asked in), else
//! JSON, whatever its type says. What is neither is told in a short sentence that repeats nothing of it.

use serde_json::{Map, Value};

/// The answer's members.
///
/// # Errors
/// It has none.
pub(super) fn members(content_type: &str, body: &[u8]) -> Result<Map<String, Value>, &'static str> {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let pairs = url::form_urlencoded::parse(body);
        return Ok(pairs.map(|(name, value)| (name.into_owned(), Value::from(value.into_owned()))).collect());
    }
    // A byte-order mark is no JSON, but providers write one.
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    match serde_json::from_slice(body) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err("the answer of the token endpoint is JSON, but no object"),
        Err(_) if essence.eq_ignore_ascii_case("text/html") => {
            Err("the token endpoint answered with a web page instead of JSON")
        }
        Err(_) if body.is_empty() => Err("the answer of the token endpoint is empty"),
        Err(_) => Err("the answer of the token endpoint is neither JSON nor a form"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_whatever_its_type_and_a_form_only_by_its_type() {
        for kind in ["application/json", "application/json; charset=utf-8", "text/plain", ""] {
            assert_eq!(members(kind, b"\xef\xbb\xbf{\"a\": 1}").unwrap()["a"], 1, "{kind}");
        }
        let form = b"access_token=a%2Bb&expires_in=60&scope=x+y";
        let read = members("Application/X-WWW-Form-Urlencoded; charset=utf-8", form).unwrap();
        assert_eq!(
            (&read["access_token"], &read["expires_in"], &read["scope"]),
            (&"a+b".into(), &"60".into(), &"x y".into())
        );
        assert!(members("application/json", form).is_err());
    }

    #[test]
    fn what_is_neither_is_told_without_its_text() {
        for (kind, body, why) in [
            ("text/html", "<html>at-SECRET</html>", "web page"),
            ("application/json", "[\"at-SECRET\"]", "no object"),
            ("application/json", "at-SECRET", "neither JSON"),
            ("application/json", "", "empty"),
        ] {
            let told = members(kind, body.as_bytes()).unwrap_err();
            assert!(told.contains(why) && !told.contains("SECRET"), "{told}");
        }
    }
}
