//! What a server is called within the URIs of its resources.

use std::fmt::Write as _;

use crate::config::ServerConfig;

/// Marks a server that a user brought: such a one never takes the URIs of the deployment's over, whatever its name is.
const PERSONAL: char = '~';

/// A server as URIs name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its name, as people know it.
    pub name: String,
    /// Whether a user brought it.
    pub is_personal: bool,
}

impl Label {
    /// Of this server.
    pub fn of(server: &ServerConfig) -> Self {
        Self { name: server.shown_name().to_owned(), is_personal: server.is_personal() }
    }

    /// As part of a URI: letters, digits, `-`, `.` and `_` as they are, all else as percent-encoded UTF-8. So neither
    /// the end of the label nor an expression of a URI template can come from a name.
    pub(super) fn encoded(&self) -> String {
        let mut text = String::with_capacity(self.name.len() + 1);
        text.extend(self.is_personal.then_some(PERSONAL));
        for byte in self.name.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_') {
                text.push(char::from(byte));
            } else {
                let _ = write!(text, "%{byte:02X}");
            }
        }
        text
    }

    /// The label that this is the only way to write of; `None` = it is none.
    pub(super) fn decoded(text: &str) -> Option<Self> {
        let (is_personal, rest) = text.strip_prefix(PERSONAL).map_or((false, text), |rest| (true, rest));
        let mut bytes = Vec::with_capacity(rest.len());
        let mut left = rest.bytes();
        while let Some(byte) = left.next() {
            if byte != b'%' {
                bytes.push(byte);
                continue;
            }
            let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            bytes.push(digit(left.next()?)? * 16 + digit(left.next()?)?);
        }
        let label = Self { name: String::from_utf8(bytes).ok()?, is_personal };
        (label.encoded() == text).then_some(label)
    }
}
