//! The HTTP headers of upstream requests (mcp.md §3.1 and §3.3, contract 8.3).
//!
//! Owns the names of the protocol's headers, the encoding of mirrored values, and what of the configured headers and of
//! those of callers goes on the wire: protocol headers are ours alone, illegal values are refused by name. Does not own when a header is
//! due. Keeps O3: configured values are marked sensitive and stand in no message.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use caribou_core::config::Secret;
use caribou_core::headers::{is_protocol_header, legal};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The revision in use; must equal the body's (mcp.md §3.1).
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The session of the legacy era (mcp.md §3.3).
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Mirrors `method` (SEP-2243).
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// Mirrors the name of what is asked for (SEP-2243).
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// Where a resumed event stream goes on (2025-03-26 to 2025-11-25).
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Both answers must be taken on every POST.
const ACCEPT_POST: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const ACCEPT_GET: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const OUR_AGENT: HeaderValue = HeaderValue::from_static(concat!("caribou/", env!("CARGO_PKG_VERSION")));

const SENTINEL_START: &str = "=?base64?";
const SENTINEL_END: &str = "?=";

/// `value` as a mirrored header carries it: visible ASCII as it is, anything else as `=?base64?…?=`.
pub(crate) fn mirrored(value: &str) -> HeaderValue {
    if !needs_encoding(value)
        && let Ok(plain) = HeaderValue::from_str(value)
    {
        return plain;
    }
    let encoded = format!("{SENTINEL_START}{}{SENTINEL_END}", BASE64_STANDARD.encode(value));
    // Base64 and its frame are visible ASCII: the conversion cannot fail.
    HeaderValue::from_str(&encoded).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// What a mirrored header says: the inverse of what senders do. `None` = it is no text, or its Base64 is broken.
pub fn unmirrored(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?;
    let Some(encoded) = text.strip_prefix(SENTINEL_START).and_then(|text| text.strip_suffix(SENTINEL_END)) else {
        return Some(text.to_owned());
    };
    String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok()
}

fn needs_encoding(value: &str) -> bool {
    let blank_edge = value.starts_with([' ', '\t']) || value.ends_with([' ', '\t']);
    let sentinel = value.starts_with(SENTINEL_START) && value.ends_with(SENTINEL_END);
    blank_edge || sentinel || !value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// The configured headers of one server, checked once.
#[derive(Debug)]
pub(crate) struct Configured {
    /// What is sent on every request; values are marked sensitive.
    pub(crate) headers: HeaderMap,
    /// Names that are left out because the protocol owns them.
    pub(crate) ignored: Vec<String>,
}

impl Configured {
    /// Checks `headers`, in document order; of two spellings of one name the last wins (contract 8.2).
    ///
    /// # Errors
    /// A header cannot be sent; the message names it and never its value.
    pub(crate) fn from_pairs(headers: &[(String, Secret)]) -> Result<Self, String> {
        let mut checked = Self { headers: HeaderMap::with_capacity(headers.len()), ignored: Vec::new() };
        for (name, value) in headers {
            if is_protocol_header(name) {
                checked.ignored.push(name.clone());
                continue;
            }
            let sent = field(name, value);
            let (key, value) = sent.map_err(|why| format!("the configured header {name:?} cannot be sent: {why}"))?;
            checked.headers.insert(key, value);
        }
        Ok(checked)
    }
}

/// Lays the headers of a caller over `headers`, in order: one field is left of each name (contract 8.2). Names on the
/// wire are of one spelling, so the map decides what is the same.
///
/// # Errors
/// One cannot be sent, or is the protocol's own; the message names it and never its value. Nothing else is then sent.
pub(crate) fn lay_over(headers: &mut HeaderMap, over: &[(String, Secret)]) -> Result<(), String> {
    for (name, value) in over {
        if is_protocol_header(name) {
            return Err(format!("the header {name:?} is the protocol's own and cannot be set"));
        }
        let (key, value) = field(name, value).map_err(|why| format!("the header {name:?} cannot be sent: {why}"))?;
        headers.insert(key, value);
    }
    Ok(())
}

/// One header as it is sent; its value is marked sensitive.
fn field(name: &str, value: &Secret) -> Result<(HeaderName, HeaderValue), String> {
    let value = legal(name, value.expose()).map_err(|error| error.to_string())?;
    let key = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
    let mut value = HeaderValue::from_str(value).map_err(|error| error.to_string())?;
    value.set_sensitive(true);
    Ok((key, value))
}

/// What of these headers another origin may see: those of the protocol.
pub(crate) fn of_protocol(headers: &HeaderMap) -> HeaderMap {
    let protocol = headers.iter().filter(|(name, _)| is_protocol_header(name.as_str()));
    let mut kept: HeaderMap = protocol.map(|(name, value)| (name.clone(), value.clone())).collect();
    kept.insert(USER_AGENT, OUR_AGENT);
    kept
}

/// The headers of every POST: `own` (configured) ones first, so that only our `User-Agent` yields to them.
pub(crate) fn of_post(own: &HeaderMap) -> HeaderMap {
    let mut headers = with_agent(own);
    headers.insert(ACCEPT, ACCEPT_POST);
    headers.insert(CONTENT_TYPE, JSON);
    headers
}

/// The headers of every GET of an event stream.
pub(crate) fn of_get(own: &HeaderMap) -> HeaderMap {
    let mut headers = with_agent(own);
    headers.insert(ACCEPT, ACCEPT_GET);
    headers
}

fn with_agent(own: &HeaderMap) -> HeaderMap {
    let mut headers = own.clone();
    headers.entry(USER_AGENT).or_insert(OUR_AGENT);
    headers
}

/// The parameter that names what a request is about, for the header `Mcp-Name` of the modern era (mcp.md §3.1).
pub(crate) fn mirrored_in_name(method: &str) -> Option<&'static str> {
    match method {
        "prompts/get" | "tools/call" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(headers: &[(&str, &str)]) -> Vec<(String, Secret)> {
        headers.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect()
    }

    #[test]
    fn plain_ascii_is_mirrored_as_it_is_and_all_else_encoded() {
        for plain in ["us-west1", "a b", "", "=?base64?x", "x?=", "~"] {
            assert_eq!(mirrored(plain), plain);
        }
        assert_eq!(mirrored("gr\u{fc}n"), "=?base64?Z3LDvG4=?=");
        assert_eq!(mirrored(" padded "), "=?base64?IHBhZGRlZCA=?=");
        assert_eq!(mirrored("line1\nline2"), "=?base64?bGluZTEKbGluZTI=?=");
        assert_eq!(mirrored("=?base64?Zm9v?="), "=?base64?PT9iYXNlNjQ/Wm05dj89?=");
    }

    #[test]
    fn what_was_mirrored_is_read_again_and_broken_base64_is_not() {
        // mcp.md §3.1, encoding.
        for value in ["us-west1", "gr\u{fc}n", " padded ", "=?base64?Zm9v?=", ""] {
            assert_eq!(unmirrored(&mirrored(value)).as_deref(), Some(value));
        }
        for broken in ["=?base64?%%%?=", "=?base64?/w==?="] {
            assert_eq!(unmirrored(&HeaderValue::from_static(broken)), None, "{broken}");
        }
    }

    #[test]
    fn configured_headers_never_replace_the_protocols() {
        let own = Configured::from_pairs(&pairs(&[
            ("accept", "*/*"),
            ("Mcp-Session-Id", "mine"),
            ("X-Key", "k1"),
            ("x-key", "k2\n"),
        ]))
        .unwrap();
        assert_eq!(own.ignored, ["accept", "Mcp-Session-Id"]);
        let post = of_post(&own.headers);
        assert_eq!(post[ACCEPT], "application/json, text/event-stream");
        assert_eq!((&post[CONTENT_TYPE], &post["x-key"]), (&JSON, &HeaderValue::from_static("k2")));
        assert!(!post.contains_key(SESSION_ID));
        assert_eq!(of_get(&own.headers)[ACCEPT], "text/event-stream");
    }

    #[test]
    fn a_configured_agent_beats_ours() {
        let own = Configured::from_pairs(&pairs(&[("user-agent", "mine/1")])).unwrap();
        assert_eq!(of_post(&own.headers)[USER_AGENT], "mine/1");
        assert_eq!(of_post(&HeaderMap::new())[USER_AGENT], OUR_AGENT);
    }

    #[test]
    fn headers_of_a_caller_replace_the_configured_ones_in_any_spelling() {
        // Contract 8.2.
        let mut headers =
            Configured::from_pairs(&pairs(&[("Authorization", "static"), ("X-Own", "o")])).unwrap().headers;
        lay_over(&mut headers, &pairs(&[("AUTHORIZATION", "ann"), ("X-Key", "k")])).unwrap();
        assert_eq!(
            (headers.len(), &headers["authorization"], &headers["x-key"]),
            (3, &"ann".parse().unwrap(), &"k".parse().unwrap())
        );
        assert!(headers["authorization"].is_sensitive());
        let refused = lay_over(&mut headers, &pairs(&[("X-Key", "hunter22\nX: y")])).unwrap_err();
        assert!(refused.contains("X-Key") && !refused.contains("hunter22"), "{refused}");
        assert!(lay_over(&mut headers, &pairs(&[("Mcp-Session-Id", "mine")])).is_err());
    }

    #[test]
    fn another_origin_sees_nothing_but_the_protocol() {
        let own = Configured::from_pairs(&pairs(&[("Authorization", "a"), ("User-Agent", "mine/1"), ("X-Key", "k")]))
            .unwrap();
        let mut post = of_post(&own.headers);
        post.insert(METHOD, HeaderValue::from_static("tools/call"));
        let seen = of_protocol(&post);
        assert_eq!(seen, {
            let mut bare = of_post(&HeaderMap::new());
            bare.insert(METHOD, HeaderValue::from_static("tools/call"));
            bare
        });
    }

    #[test]
    fn an_illegal_value_is_refused_by_name_and_no_value_is_printed() {
        let refused = Configured::from_pairs(&pairs(&[("X-Key", "hunter22\r\nEvil: 1")])).unwrap_err();
        assert!(refused.contains("X-Key") && !refused.contains("hunter22"), "{refused}");
        let own = Configured::from_pairs(&pairs(&[("X-Key", "hunter22")])).unwrap();
        assert!(!format!("{own:?}").contains("hunter22"));
    }
}
