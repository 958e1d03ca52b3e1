//! A short, safe excerpt of what a server sent, for logs and errors.
//!
//! Owns the rule that nothing a server says reaches a log or an error whole, on more than one line, or with a known
//! secret in it (invariant O3).

use caribou_core::masker::Masker;

/// What is shown.
const SHOWN_CHARS: usize = 200;

/// What is looked at: enough that a secret cut at the end lies far behind what is shown.
const READ_BYTES: usize = 16 * 1024;

/// The start of `text` on one line: secrets masked, control characters escaped, bad UTF-8 replaced, an ellipsis where
/// it was cut.
pub(crate) fn excerpt(text: &[u8], masker: &Masker) -> String {
    let read = String::from_utf8_lossy(&text[..text.len().min(READ_BYTES)]);
    let masked = masker.mask(read.trim());
    let mut shown = String::new();
    let mut chars = masked.chars();
    for c in chars.by_ref().take(SHOWN_CHARS) {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    if chars.next().is_some() || text.len() > READ_BYTES {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_short_on_one_line_and_without_secrets() {
        let masker = Masker::new(["hunter22".to_owned()]);
        assert_eq!(excerpt(b"key=hunter22\n\x1b[32mok\xff", &masker), "key=***\\n\\u{1b}[32mok\u{fffd}");
        let long = excerpt(&[b'x'; 3_000], &masker);
        assert_eq!(long.chars().count(), SHOWN_CHARS + 1);
    }
}
