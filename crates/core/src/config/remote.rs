//! The fields of a remote server: `url`, `headers` and our own `message_url`, `allowed_redirect_origins`
//! (contract 1.2, 1.10, 8.3).
//!
//! Owns which static headers are sent. A header that cannot be sent, or whose variable is empty, costs the server:
//! without it every request would go out with no credential. One of the protocol's own is left out with a warning.

use std::collections::HashSet;

use super::caller_headers::check_spelling;
use super::env_refs::{Text, holds_inline_reference};
use super::fields::{Field, Fields};
use super::web_address;
use super::{Remote, Secret};
use crate::headers;

/// Reads them; `kind` is the word of `type`.
pub(super) fn read(server: &Fields<'_>, kind: &str) -> Remote {
    let requirement = format!("type {kind} requires 'url' field");
    let text = server.required("url", &requirement, "add \"url\": \"https://…\"");
    Remote {
        url: text.map(|_| address(server, "url")).unwrap_or_default().unwrap_or_default(),
        headers: headers(server),
    }
}

/// An `http` or `https` address under `key`, if one is written.
fn address(server: &Fields<'_>, key: &str) -> Option<String> {
    let field = server.get_set(key)?;
    let address = field.text()?.value.trim();
    if !web_address::is_http(address) {
        field.error("must be an address with http:// or https:// and a host", "");
        return None;
    }
    Some(address.to_owned())
}

/// The field `message_url`.
pub(super) fn message_url(server: &Fields<'_>) -> Option<String> {
    address(server, "message_url")
}

/// The field `allowed_redirect_origins`, normalised.
pub(super) fn redirect_origins(server: &Fields<'_>) -> Vec<String> {
    let items = server.get_set("allowed_redirect_origins").and_then(|field| field.list()).into_iter().flatten();
    let mut origins = Vec::new();
    for item in items {
        let Some(text) = item.text() else { continue };
        match web_address::origin(text.value.trim()) {
            Some(origin) => origins.push(origin),
            None => item.error("must be an origin: scheme, host and port only", "such as https://mcp.example.com"),
        }
    }
    origins
}

fn headers(server: &Fields<'_>) -> Vec<(String, Secret)> {
    let mut seen = HashSet::new();
    let mut sent = Vec::new();
    for (name, field, text) in server.text_map("headers") {
        if !check_spelling(&mut seen, &field, name) {
            continue;
        }
        if headers::is_protocol_header(name) {
            field.warn("Caribou writes this header itself: ignored", "remove it");
            continue;
        }
        if let Some(value) = sendable(name, &field, text) {
            sent.push((name.to_owned(), Secret::new(value)));
        }
    }
    sent
}

/// The value as it goes on the wire. A reference that did not give a value is an error: neither an empty credential nor
/// the text of a reference is ever sent.
fn sendable<'a>(name: &str, field: &Field<'_>, text: &'a Text) -> Option<&'a str> {
    let value = match headers::legal(name, &text.value) {
        Ok(value) => value,
        Err(illegal) => {
            field.error(&illegal.to_string(), "");
            return None;
        }
    };
    if value.is_empty() && text.from_env {
        let variable = text.variable.as_deref().map_or(String::new(), |name| format!("`{name}` "));
        field.error(&format!("the variable {variable}it refers to is empty or not set"), "set it");
    } else if value.is_empty() {
        field.warn("is empty: the header is not sent", "remove it");
    } else if !text.from_env && !field.report.is_literal() && holds_inline_reference(value) {
        field.error(
            "holds a reference inside a longer value, which is not expanded",
            "put the whole value into a variable",
        );
    } else {
        return Some(value);
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::config::samples::{assert_dropped, assert_quiet, assert_warned, good};
    use crate::config::{Remote, Transport};

    fn remote(body: &str) -> Remote {
        match &good(&format!(r#""type": "http", {body}"#)).transport {
            Transport::Http(remote) => remote.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn address_and_headers_are_as_written_and_in_order() {
        // Contract 1.10.
        let remote =
            remote(r#""url": "http://h:1//x/*y*/", "headers": {"X-Note": "a // b, ]", "Authorization": "$TOKEN"}"#);
        assert_eq!(remote.url, "http://h:1//x/*y*/");
        let headers: Vec<_> = remote.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(headers, [("X-Note", "a // b, ]"), ("Authorization", "tok-123456")]);
    }

    #[test]
    fn an_address_is_required_with_its_scheme() {
        // Contract 1.2.
        assert_dropped(&[
            (r#""type": "http""#, "type http requires 'url' field"),
            (r#""type": "sse", "url": null"#, "type sse requires 'url' field"),
            (r#""type": "http", "url": "$UNSET""#, "url: type http requires 'url' field: the variable `UNSET`"),
            (r#""type": "http", "url": "localhost:1/mcp""#, "url: must be an address with http:// or https://"),
            (r#""type": "http", "url": "ws://h/mcp""#, "url: must be an address with http:// or https://"),
        ]);
    }

    #[test]
    fn a_header_that_cannot_be_sent_costs_the_server_and_is_named_without_its_value() {
        // Contract 8.3, 1.10, 1.2.
        let http = |headers: &str| format!(r#""type": "http", "url": "http://h", "headers": {{{headers}}}"#);
        for (headers, reason) in [
            (r#""X-Key": "tok-SECRET\r\nX-Evil: 1""#, "headers.X-Key: the header value holds a line break"),
            (r#""X-Key": "tok-SECRET\u0000k""#, "headers.X-Key: the header value"),
            (r#""X-Key": "tok-SECRET-工""#, "headers.X-Key: the header value"),
            (r#""X Key": "v""#, r#"headers["X Key"]: the header name"#),
            (r#""A": "1", "a": "2""#, "headers.a: one header stands here in two spellings"),
            (r#""A": 1"#, "headers.A: must be a string"),
            (r#""A": "$UNSET""#, "headers.A: the variable `UNSET` it refers to is empty or not set"),
            (r#""A": "Bearer $TOKEN""#, "headers.A: holds a reference inside a longer value"),
            (r#""A": "Bearer ${TOKEN}""#, "headers.A: holds a reference inside a longer value"),
            (r#""A": "$NEWLINE""#, "headers.A: the variable `NEWLINE` it refers to is empty"),
        ] {
            assert_dropped(&[(&http(headers), reason)]);
        }
        assert_warned(&[
            (&http(r#""A": """#), "headers.A: is empty"),
            (&http(r#""Accept": "x""#), "writes this header itself"),
        ]);
        assert_quiet(&[
            &http(r#""A": "  tok\n""#),
            &http(r#""A": "in\tner tab""#),
            &http(r#""User-Agent": "x""#),
            &http(r#""A": "$DOLLAR""#),
        ]);
    }

    #[test]
    fn headers_are_trimmed_and_those_of_the_protocol_left_out() {
        let remote = remote(r#""url": " http://h \n", "headers": {"A": " tok\n", "Mcp-Session-Id": "x", "B": ""}"#);
        assert_eq!(remote.url, "http://h");
        assert_eq!(remote.headers.len(), 1);
        assert_eq!(remote.headers[0].1.expose(), "tok");
    }
}
