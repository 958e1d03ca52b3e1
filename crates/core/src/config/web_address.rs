//! What configuration must know about a web address.
//!
//! Owns whether a text is an `http` or `https` address at all, which origin it names and which of its parts are
//! secret; the full grammar is left to the client that connects. Never fails: what is no address gives nothing.

/// The parts of an address that matter here.
struct Parts<'a> {
    https: bool,
    userinfo: Option<&'a str>,
    host: &'a str,
    port: Option<u16>,
    /// Path, query and fragment.
    rest: &'a str,
}

fn parts(address: &str) -> Option<Parts<'_>> {
    let (scheme, after) = address.split_once("://")?;
    let https = scheme.eq_ignore_ascii_case("https");
    if !(https || scheme.eq_ignore_ascii_case("http"))
        || address.contains(|c: char| c.is_whitespace() || c.is_control())
    {
        return None;
    }
    let (authority, rest) = after.split_at(after.find(['/', '?', '#', '\\']).unwrap_or(after.len()));
    let (userinfo, host_port) = match authority.rsplit_once('@') {
        Some((userinfo, host_port)) => (Some(userinfo), host_port),
        None => (None, authority),
    };
    // A colon inside the brackets of an IPv6 address starts no port.
    let host_end = host_port.rfind(']').map_or(0, |bracket| bracket + 1);
    let colon = host_port[host_end..].find(':').map_or(host_port.len(), |colon| host_end + colon);
    let (host, port) = host_port.split_at(colon);
    let port = match port.strip_prefix(':') {
        None | Some("") => None,
        Some(digits) => Some(digits.parse().ok()?),
    };
    (!host.is_empty()).then_some(Parts { https, userinfo, host, port, rest })
}

/// Whether `text` is an address with the scheme `http` or `https` and a host.
pub(super) fn is_http(text: &str) -> bool {
    parts(text).is_some()
}

/// The origin that `text` names, as RFC 6454 writes it: lower case, without the scheme's own port. `None` when it
/// names more than an origin, or none.
pub(super) fn origin(text: &str) -> Option<String> {
    let Parts { https, userinfo: None, host, port, rest: "" | "/" } = parts(text)? else { return None };
    let (scheme, own_port) = if https { ("https", 443) } else { ("http", 80) };
    let host = host.to_ascii_lowercase();
    Some(match port.filter(|port| *port != own_port) {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    })
}

/// The address without its login, query and fragment, which may be secret.
pub(super) fn without_secrets(address: &str) -> Option<String> {
    let Parts { https, host, port, rest, .. } = parts(address)?;
    let scheme = if https { "https" } else { "http" };
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    Some(match port {
        Some(port) => format!("{scheme}://{host}:{port}{path}"),
        None => format!("{scheme}://{host}{path}"),
    })
}

/// A part of a path of so many characters, a digit among them, is rather a key than a name: some providers give each
/// client an address of its own.
const LONG_SEGMENT: usize = 16;

/// Credentials that an address carries: user, password, the values of its query, and keys in its path; as they stand
/// and decoded.
pub(super) fn secrets(address: &str) -> Vec<String> {
    let Some(Parts { userinfo, rest, .. }) = parts(address) else { return Vec::new() };
    let logins = userinfo.into_iter().flat_map(|login| login.splitn(2, ':'));
    let query = rest.split('#').next().and_then(|rest| rest.split_once('?')).map_or("", |(_, query)| query);
    let values = query.split('&').filter_map(|pair| pair.split_once('=')).map(|(_, value)| value);
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    let keys = path.split('/').filter(|part| part.len() >= LONG_SEGMENT && part.contains(|c: char| c.is_ascii_digit()));
    let secrets = logins.chain(values).chain(keys).filter(|secret| !secret.is_empty());
    secrets.flat_map(|secret| [Some(secret.to_owned()), decoded(secret)]).flatten().collect()
}

/// A text without its percent-encoding (RFC 3986 §2.1); `None` when it has none, or when none of ours would give it.
fn decoded(text: &str) -> Option<String> {
    let (before, _) = text.split_once('%')?;
    let mut bytes = before.as_bytes().to_vec();
    for part in text[before.len()..].split('%').skip(1) {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_addresses_with_a_host_pass() {
        for good in ["http://h", "HTTPS://h:1/p?q#f", "http://u:p@[::1]:80/", "http://127.0.0.1:9001//x/*y*/"] {
            assert!(is_http(good), "{good}");
        }
        for bad in ["", "h:1/mcp", "localhost/mcp", "ftp://h", "http://", "http:///p", "http://h:port/", "http://a b/"]
        {
            assert!(!is_http(bad), "{bad}");
        }
    }

    #[test]
    fn origins_are_normalised_and_anything_more_is_refused() {
        assert_eq!(origin("HTTPS://Example.COM:443/").as_deref(), Some("https://example.com"));
        assert_eq!(origin("http://[::1]:8080").as_deref(), Some("http://[::1]:8080"));
        for bad in ["https://h/p", "https://h?q", "https://u@h", "h", "*"] {
            assert_eq!(origin(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_address_is_named_without_its_secrets() {
        assert_eq!(without_secrets("https://ann:p@h:1/p?key=k#f").as_deref(), Some("https://h:1/p"));
        assert_eq!(without_secrets("http://h").as_deref(), Some("http://h"));
        assert_eq!(without_secrets("h/p"), None);
    }

    #[test]
    fn logins_query_values_and_keys_in_the_path_are_secret() {
        assert_eq!(
            secrets("https://ann:pass:word@h/p?key=k1&empty=&flag&x=a=b#f?no=1"),
            ["ann", "pass:word", "k1", "a=b"]
        );
        assert!(secrets("no address?key=k1").is_empty());
        assert_eq!(secrets("http://h/?key=a%2Fb%zz%2"), ["a%2Fb%zz%2"]);
        assert_eq!(secrets("http://u:a%2Fb@h"), ["u", "a%2Fb", "a/b"]);
        assert_eq!(secrets("http://h/api/s/NmYzOTk1NGUtZTg0/mcp"), ["NmYzOTk1NGUtZTg0"]);
        assert!(secrets("http://h/streamable-http-endpoint/v1/mcp").is_empty());
    }
}
