//! The entity tag of the stored configuration, and the condition a writer may set (RFC 9110 §8.8.3, §13.1.1).
//!
//! Owns the form of the tag and when a condition holds; answering 409 is the caller's. A tag is strong: it is the
//! sha256 of the stored bytes, with the number of their revision where there is one, so equal tags mean equal
//! documents. It tells nothing about the content (O3). A condition
//! that is not understood holds for no document, so that a stale write never passes by mistake.

use std::fmt;

use sha2::{Digest, Sha256};

/// The tag of one stored text. `Display` is the header form, quotes included.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ETag([u8; 32]);

impl ETag {
    /// The tag of these bytes.
    pub fn of(text: &[u8]) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// The tag of these bytes as one revision of many: the same bytes have another one when they come again.
    pub fn of_revision(number: i64, text: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(number.to_be_bytes());
        hash.update(text);
        Self(hash.finalize().into())
    }

    fn parse(quoted: &str) -> Option<Self> {
        let hex = quoted.strip_prefix('"')?.strip_suffix('"')?;
        if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let mut tag = [0; 32];
        for (byte, at) in tag.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&hex[at..at + 2], 16).ok()?;
        }
        Some(Self(tag))
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("\"")
    }
}

impl fmt::Debug for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The header `If-Match`: what must be stored for a write to go on. The default sets no condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum IfMatch {
    /// No header: the last writer wins (contract 2.2).
    #[default]
    Unconditional,
    /// `*`: any document, but there must be one.
    Exists,
    /// One of these; weak and foreign tags match nothing and are left out.
    OneOf(Vec<ETag>),
}

impl IfMatch {
    /// Reads the value of the header.
    pub fn parse(header: &str) -> Self {
        if header.trim() == "*" {
            return Self::Exists;
        }
        Self::OneOf(header.split(',').filter_map(|tag| ETag::parse(tag.trim())).collect())
    }

    /// Whether a write may replace `stored`; `None` = nothing is stored.
    pub fn allows(&self, stored: Option<ETag>) -> bool {
        match (self, stored) {
            (Self::Unconditional, _) | (Self::Exists, Some(_)) => true,
            (Self::OneOf(tags), Some(stored)) => tags.contains(&stored),
            (Self::Exists | Self::OneOf(_), None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_the_quoted_sha256_and_is_read_back() {
        let tag = ETag::of(b"");
        assert_eq!(tag.to_string(), "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"");
        assert_eq!(IfMatch::parse(&tag.to_string()), IfMatch::OneOf(vec![tag]));
        assert_ne!(tag, ETag::of(b" "));
        assert_eq!(ETag::of_revision(1, b"a"), ETag::of_revision(1, b"a"));
        assert_ne!(ETag::of_revision(1, b"a"), ETag::of_revision(3, b"a"));
    }

    #[test]
    fn a_condition_holds_for_what_it_names_only() {
        // Contract 2.2 with `If-Match` on top.
        let (a, b) = (ETag::of(b"a"), ETag::of(b"b"));
        let list = IfMatch::parse(&format!("\"x\", {a},{b}"));
        assert!(list.allows(Some(a)) && list.allows(Some(b)) && !list.allows(Some(ETag::of(b"c"))));
        assert!(!list.allows(None));
        assert!(IfMatch::parse(" * ").allows(Some(a)) && !IfMatch::Exists.allows(None));
        assert!(IfMatch::default().allows(None) && IfMatch::default().allows(Some(a)));
    }

    #[test]
    fn weak_and_foreign_tags_match_nothing() {
        let tag = ETag::of(b"a");
        let unquoted = tag.to_string().replace('"', "");
        for header in
            [format!("W/{tag}"), unquoted, "\"\"".to_owned(), String::new(), format!("\"{}\"", "é".repeat(32))]
        {
            assert!(!IfMatch::parse(&header).allows(Some(tag)), "{header}");
        }
    }
}
