//! What a `WWW-Authenticate` challenge says (RFC 9110 §11.6.1, RFC 6750 §3, RFC 9728 §5.1).
//!
//! Owns finding one parameter in it. It is written by the server: nothing is followed, and what is shown of it is
//! short.

use url::Url;

/// The longest address that is shown.
const LONGEST_ADDRESS: usize = 300;

/// The value of a parameter, wherever it stands; its name in any case, its value quoted or not.
pub(crate) fn parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge;
    while let Some(at) = rest.find('=') {
        let is_wanted =
            rest[..at].trim_end().rsplit([' ', '\t', ',']).next().is_some_and(|n| n.eq_ignore_ascii_case(name));
        let (value, after) = value(rest[at + 1..].trim_start());
        if is_wanted {
            return Some(value);
        }
        rest = after;
    }
    None
}

/// The address of the resource's metadata without its query, if it is one of HTTP.
pub(crate) fn resource_metadata(challenge: &str) -> Option<String> {
    let url = Url::parse(&parameter(challenge, "resource_metadata")?).ok()?;
    let is_http = matches!(url.scheme(), "http" | "https") && url.as_str().len() <= LONGEST_ADDRESS;
    is_http.then(|| crate::transport::redirect::without_query(&url))
}

/// The value that `text` starts with, and what comes after it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut escaped = false;
    for (at, c) in quoted.char_indices() {
        match c {
            _ if escaped => {
                escaped = false;
                value.push(c);
            }
            '\\' => escaped = true,
            '"' => return (value, &quoted[at + 1..]),
            c => value.push(c),
        }
    }
    // The end of the quotation is missing: the server's text breaks off.
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_found_quoted_or_not_in_any_case_and_place() {
        let challenge = r#"Basic realm="a, scope=\"no\"", Bearer error="insufficient_scope",SCOPE = "a:b c" , max=3"#;
        assert_eq!(parameter(challenge, "scope").as_deref(), Some("a:b c"));
        assert_eq!(parameter(challenge, "error").as_deref(), Some("insufficient_scope"));
        assert_eq!(parameter(challenge, "max").as_deref(), Some("3"));
        assert_eq!(parameter(challenge, "realm").as_deref(), Some("a, scope=\"no\""));
        for none in ["", "Bearer", "Bearer xscope=1", "=", "scope"] {
            assert_eq!(parameter(none, "scope"), None, "{none}");
        }
        assert_eq!(parameter("Bearer scope=\"cut", "scope").as_deref(), Some("cut"));
    }

    #[test]
    fn only_an_address_of_http_is_metadata_and_its_query_is_not_shown() {
        let of = |url: &str| resource_metadata(&format!("Bearer resource_metadata=\"{url}\""));
        assert_eq!(of("https://h/.well-known/p?k=1#f").as_deref(), Some("https://h/.well-known/p"));
        for other in
            ["javascript:alert(1)", "file:///etc/passwd", "/relative", &format!("http://h/{}", "x".repeat(400))]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
