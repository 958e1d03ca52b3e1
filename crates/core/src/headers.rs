//! Which configured headers may go on the wire.
//!
//! Owns the rule that configuration and callers never replace a header of the protocol itself, and that a value
//! which would split a request is refused by name, never by value (contract 8.3). Stricter than the contract for DEL
//! and the other control characters: RFC 9110 §5.5 forbids them, so no request could hold them anyway.

/// Headers that Caribou writes itself on every upstream request: a configured one is ignored with a warning.
const PROTOCOL_HEADERS: [&str; 14] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Whether `name` belongs to the protocol or to the connection, ignoring case.
pub fn is_protocol_header(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    PROTOCOL_HEADERS.contains(&lower.as_str()) || lower.starts_with("mcp-param-")
}

/// Why a header cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IllegalHeader {
    /// The name is not an HTTP token.
    #[error("the header name is not an HTTP token (letters, digits and !#$%&'*+-.^_`|~)")]
    Name,
    /// The value holds a control character or something outside visible ASCII.
    #[error("the header value holds a line break, a control character or a character outside ASCII")]
    Value,
}

/// The value as it is sent: blanks, tabs and line ends around it are trimmed, since secrets read from files often end
/// in a newline. Nothing else is: other white space is illegal wherever it stands.
///
/// # Errors
/// The name is no token, or the trimmed value cannot stand in a header. The error never repeats the value.
pub fn legal<'v>(name: &str, value: &'v str) -> Result<&'v str, IllegalHeader> {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(token) {
        return Err(IllegalHeader::Name);
    }
    let trimmed = value.trim_matches([' ', '\t', '\r', '\n']);
    let visible = |c: char| c == '\t' || (' '..='~').contains(&c);
    if trimmed.chars().all(visible) { Ok(trimmed) } else { Err(IllegalHeader::Value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_legal_by_its_characters_wherever_they_stand() {
        // Contract 8.3.
        for illegal in ["\0", "\n", "\u{b}", "\u{c}", "\r", "gr\u{fc}n", "\u{a0}", "\u{2003}", "\u{7f}"] {
            for value in [format!("t{illegal}k"), format!("{illegal}tk"), format!("tk{illegal}")] {
                // Line ends around a value are trimmed before they are judged.
                let is_trimmed = matches!(illegal, "\n" | "\r") && !(value.starts_with('t') && value.ends_with('k'));
                assert_eq!(legal("X-Key", &value).is_ok(), is_trimmed, "{value:?}");
            }
        }
        for value in ["in\tner", "in  ner", "~!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}", ""] {
            assert_eq!(legal("X-Key", value), Ok(value));
            assert_eq!(legal("X-Key", &format!(" \t{value}\t ")), Ok(value));
        }
    }

    #[test]
    fn surrounding_blanks_go_and_inner_line_ends_are_refused() {
        assert_eq!(legal("X-Key", "tok\n"), Ok("tok"));
        assert_eq!(legal("X-Key", "tok\r\nX-Evil: 1"), Err(IllegalHeader::Value));
        assert_eq!(legal("X Key", "tok"), Err(IllegalHeader::Name));
        assert_eq!(legal("X-Key", "t\u{0}k"), Err(IllegalHeader::Value));
        assert_eq!(legal("X-Key", "grün"), Err(IllegalHeader::Value));
    }

    #[test]
    fn protocol_headers_are_known_in_any_case() {
        assert!(is_protocol_header("ACCEPT") && is_protocol_header("Mcp-Param-Region"));
        assert!(!is_protocol_header("Authorization") && !is_protocol_header("User-Agent"));
    }
}
