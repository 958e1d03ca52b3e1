//! Which era a request is of, by the first evidence it carries, and what the modern one demands (mcp.md §2.2, §3.1).

use axum::http::{HeaderMap, HeaderName};
use caribou_core::era::{Era, LEGACY_VERSIONS, MODERN_VERSION};
use caribou_core::raw::{Members, text};
use caribou_mcp::{METHOD, NAME, PROTOCOL_VERSION, SESSION_ID, unmirrored};

use crate::fault::Fault;
use crate::message::Message;
use crate::meta::{CAPABILITIES, Meta, VERSION};

/// The revisions that are served without a session.
pub(crate) const STATELESS: [&str; 1] = [MODERN_VERSION];

/// The era of a message: never told by its method, since both eras may share a name.
pub(crate) fn of(headers: &HeaderMap, message: &Message<'_>) -> Era {
    let meta = Meta::of(message.params);
    if meta.get(VERSION).is_some() || meta.get(CAPABILITIES).is_some() {
        return Era::Modern;
    }
    match header(headers, &PROTOCOL_VERSION) {
        Some(version) if version == MODERN_VERSION => Era::Modern,
        // Some revision that we do not know, with no session to judge it by.
        Some(version) if !LEGACY_VERSIONS.contains(&version) && !headers.contains_key(SESSION_ID) => Era::Modern,
        _ => Era::Legacy,
    }
}

/// Whether a request of the modern era carries what it must, and its headers say what its body does.
///
/// # Errors
/// In the order of mcp.md §3.1: metadata, mismatch, revision, headers.
pub(crate) fn demand_modern(headers: &HeaderMap, message: &Message<'_>, method: &str) -> Result<(), Fault> {
    let meta = Meta::of(message.params);
    let bad_meta = |key: &str, what: &str| Fault {
        is_envelopes: true,
        ..Fault::invalid_params(format!("`_meta` must hold `{key}`, {what}"))
    };
    let version = meta.get(VERSION).and_then(text).ok_or_else(|| bad_meta(VERSION, "a string"))?;
    let capabilities = meta.get(CAPABILITIES).filter(|capabilities| capabilities.get().starts_with('{'));
    capabilities.ok_or_else(|| bad_meta(CAPABILITIES, "an object"))?;
    let sent = header(headers, &PROTOCOL_VERSION);
    if sent.is_some_and(|sent| sent != version) {
        return Err(differs(&PROTOCOL_VERSION, VERSION));
    }
    if !STATELESS.contains(&&*version) {
        return Err(Fault::unsupported(&version, &STATELESS));
    }
    sent.ok_or_else(|| missing(&PROTOCOL_VERSION))?;
    match header(headers, &METHOD) {
        None => return Err(missing(&METHOD)),
        Some(sent) if sent != method => return Err(differs(&METHOD, "method")),
        Some(_) => {}
    }
    let Some(member) = named_by(method) else { return Ok(()) };
    let params = message.params.and_then(Members::of);
    let Some(named) = params.as_ref().and_then(|params| text(params.get(member)?)) else {
        return Err(Fault::invalid_params(format!("`params.{member}` must be a string")));
    };
    let sent = headers.get(&NAME).ok_or_else(|| missing(&NAME))?;
    match unmirrored(sent) {
        None => Err(Fault::header_mismatch("`Mcp-Name` cannot be decoded")),
        Some(sent) if sent != named => Err(differs(&NAME, member)),
        Some(_) => Ok(()),
    }
}

/// The parameter that names what a request is about.
fn named_by(method: &str) -> Option<&'static str> {
    match method {
        "prompts/get" | "tools/call" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

fn header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default().trim())
}

fn missing(header: &HeaderName) -> Fault {
    Fault::header_mismatch(format!("the header `{header}` is missing"))
}

fn differs(header: &HeaderName, member: &str) -> Fault {
    Fault::header_mismatch(format!("the header `{header}` says something else than `{member}` of the body"))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const META: &str = concat!(
        r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientCapabilities":{}}"#
    );

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn body(params: &str, method: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#)
    }

    #[test]
    fn the_era_is_told_by_metadata_and_headers_never_by_the_method() {
        // mcp.md 14.2.
        let era = |params: &str, pairs: &[(&'static str, &'static str)]| {
            let body = body(params, "initialize");
            of(&headers(pairs), &Message::read(body.as_bytes()).unwrap())
        };
        assert_eq!(era(META, &[]), Era::Modern);
        assert_eq!(era("", &[]), Era::Legacy);
        assert_eq!(era("", &[("mcp-protocol-version", "2025-11-25")]), Era::Legacy);
        assert_eq!(era("", &[("mcp-protocol-version", "2026-07-28"), ("mcp-session-id", "s")]), Era::Modern);
        assert_eq!(era("", &[("mcp-protocol-version", "2031-01-01")]), Era::Modern);
        assert_eq!(era("", &[("mcp-protocol-version", "2031-01-01"), ("mcp-session-id", "s")]), Era::Legacy);
    }

    #[test]
    fn what_the_modern_era_demands_is_told_by_code() {
        // mcp.md §17, S1 to S3.
        let code = |params: &str, pairs: &[(&'static str, &'static str)]| {
            let body = body(params, "tools/call");
            let message = Message::read(body.as_bytes()).unwrap();
            demand_modern(&headers(pairs), &message, "tools/call").map_err(|fault| (fault.status.as_u16(), fault.code))
        };
        let version = ("mcp-protocol-version", "2026-07-28");
        let method = ("mcp-method", "tools/call");
        let call = format!(r#""name":"süd",{META}"#);
        let right = [version, method, ("mcp-name", "=?base64?c8O8ZA==?=")];
        assert_eq!(code(&call, &right), Ok(()));
        assert_eq!(code("", &right), Err((400, -32_602)));
        assert_eq!(
            code(r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#, &right),
            Err((400, -32_602))
        );
        let other = call.replace("2026-07-28", "2031-01-01");
        assert_eq!(code(&other, &[("mcp-protocol-version", "2031-01-01")]), Err((400, -32_022)));
        for wrong in [
            &[][..],
            &[version],
            &[version, ("mcp-method", "tools/list"), ("mcp-name", "=?base64?c8O8ZA==?=")],
            &[version, method],
            &[version, method, ("mcp-name", "nord")],
            &[version, method, ("mcp-name", "=?base64?%%%?=")],
            &[("mcp-protocol-version", "2025-11-25"), method, ("mcp-name", "=?base64?c8O8ZA==?=")],
        ] {
            assert_eq!(code(&call, wrong), Err((400, -32_020)), "{wrong:?}");
        }
    }
}
