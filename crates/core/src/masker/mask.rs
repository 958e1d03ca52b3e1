//! Finds the known secrets in a text, in one pass whatever their number, and replaces them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::forms::Forms;

/// A secret shorter than this is not looked for: replacing every `1` of a log helps nobody.
const SHORTEST: usize = 6;

/// What stands in place of a secret.
pub const MASK: &str = "***";

/// By how many bytes a text that is looked for is found. The shortest, of Base64, has five.
const PREFIX: usize = 4;

/// Within how many characters beside a match further bits of the secret may stand: a group of Base64.
const GROUP: usize = 4;

/// Replaces known secret values in text, in every spelling that `forms` knows. Prints nothing of what it knows.
#[derive(Clone, Default, PartialEq)]
pub struct Masker {
    /// Shared with the maskers that this one was made from, so that further values cost only themselves.
    layers: Vec<Arc<Layer>>,
}

#[derive(Default, PartialEq)]
struct Layer {
    secrets: usize,
    /// By their first bytes.
    wanted: BTreeMap<[u8; PREFIX], Vec<Wanted>>,
}

#[derive(PartialEq)]
struct Wanted {
    text: Box<str>,
    is_base64: bool,
}

impl Masker {
    /// A masker for these values; those too short to be told from ordinary text are left out.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        Self { layers: Layer::of(values).into_iter().map(Arc::new).collect() }
    }

    /// This masker with further values. Of a header value that starts with a scheme, such as `Bearer`, what follows
    /// is one too: servers print either.
    #[must_use]
    pub fn with<'v>(&self, header_values: impl IntoIterator<Item = &'v str>) -> Self {
        let credential = |value: &'v str| value.trim().split_once(' ').map(|(_, credential)| credential.to_owned());
        let further = header_values.into_iter().flat_map(|value| [Some(value.to_owned()), credential(value)]);
        let further = Layer::of(further.flatten()).map(Arc::new);
        Self { layers: self.layers.iter().cloned().chain(further).collect() }
    }

    /// `text` with every known secret replaced.
    pub fn mask(&self, text: &str) -> String {
        let mut masked = String::with_capacity(text.len());
        let mut shown = 0;
        for secret in joined(self.layers.iter().flat_map(|layer| layer.found_in(text)).collect()) {
            masked.push_str(&text[shown..secret.start]);
            masked.push_str(MASK);
            shown = secret.end;
        }
        masked.push_str(&text[shown..]);
        masked
    }
}

impl Layer {
    fn of(values: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut layer = Self::default();
        for value in values {
            let value = value.trim();
            if value.len() < SHORTEST {
                continue;
            }
            let Forms { whole, base64 } = Forms::of(value);
            let wanted = whole.into_iter().map(|text| (text, false)).chain(base64.into_iter().map(|text| (text, true)));
            for (text, is_base64) in wanted {
                let Some(prefix) = text.as_bytes().first_chunk() else { continue };
                let bucket = layer.wanted.entry(*prefix).or_default();
                bucket.push(Wanted { text: text.into(), is_base64 });
            }
            layer.secrets += 1;
        }
        (layer.secrets > 0).then_some(layer)
    }

    /// Where in `text` something that is looked for stands.
    fn found_in(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for (start, prefix) in text.as_bytes().windows(PREFIX).enumerate() {
            let Some(bucket) = prefix.first_chunk().and_then(|prefix| self.wanted.get(prefix)) else { continue };
            let here = bucket.iter().filter(|wanted| text.as_bytes()[start..].starts_with(wanted.text.as_bytes()));
            found.extend(here.map(|wanted| {
                let end = start + wanted.text.len();
                if wanted.is_base64 { around(text.as_bytes(), start..end) } else { start..end }
            }));
        }
        found
    }
}

/// The match with what belongs to its first and last group. Base64 and its padding are ASCII, so no character is split.
fn around(text: &[u8], found: Range<usize>) -> Range<usize> {
    let is_letter = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(*byte);
    let before = text[..found.start].iter().rev().take(GROUP).take_while(is_letter).count();
    let after = text[found.end..].iter().take(GROUP).take_while(|byte| is_letter(byte) || **byte == b'=').count();
    found.start - before..found.end + after
}

/// Overlapping ranges as one, in order.
fn joined(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

impl fmt::Debug for Masker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Masker({} secrets)", self.layers.iter().map(|layer| layer.secrets).sum::<usize>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_secrets_leave_nothing_and_short_ones_are_left() {
        let masker = Masker::new(["secret-1", "secret-1-and-more", "more-to-come", "1"].map(str::to_owned));
        assert_eq!(masker.mask("a secret-1-and-more-to-come b secret-1 c 1 é"), "a *** b *** c 1 é");
    }

    #[test]
    fn further_header_values_are_known_with_and_without_their_scheme() {
        // Invariant O3.
        let masker = Masker::new(["secret-1".to_owned()]).with(["Bearer hunter22", "key-of-ann"]);
        assert_eq!(masker.mask("secret-1, Bearer hunter22, hunter22, key-of-ann"), "***, ***, ***, ***");
    }

    #[test]
    fn no_encoding_that_a_server_answers_with_shows_a_secret() {
        // Invariant O3.
        let masker = Masker::new(["p&ss w/rd+1".to_owned()]);
        for spelling in [
            "p&ss w/rd+1",
            "p%26ss+w%2Frd%2B1",
            "p%26ss%20w%2frd%2b1",
            "p&ss%20w/rd+1",
            "cCZzcyB3L3JkKzE=",
            "YzpwJnNzIHcvcmQrMQ",
            "YW46cCZzcyB3L3JkKzE=",
            "7026737320772f72642b31",
        ] {
            assert_eq!(masker.mask(&format!("<{spelling}>")), "<***>", "{spelling}");
        }
        assert_eq!(masker.mask("<70267373 20772f72642b31>"), "<70267373 20772f72642b31>", "two halves are not it");
    }

    #[test]
    fn debug_output_holds_no_secret() {
        assert_eq!(format!("{:?}", Masker::new(["hunter22".to_owned()])), "Masker(1 secrets)");
    }
}
