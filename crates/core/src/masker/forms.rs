//! The spellings in which a secret comes back: as it is, as JSON, a URL and a form write it, in hexadecimal, and in
//! Base64, alone or amid other text such as `user:`.
//!
//! Owns no search. What is encoded twice is not known.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The two alphabets of Base64 (RFC 4648 §4 and §5).
const ALPHABETS: [&[u8; 64]; 2] = [
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
];

/// The texts that are to be looked for.
pub(super) struct Forms {
    /// Those that stand for all of the secret.
    pub(super) whole: BTreeSet<String>,
    /// Those to which neighbouring characters of Base64 belong, that hold bits of the secret too.
    pub(super) base64: BTreeSet<String>,
}

impl Forms {
    /// All spellings of one secret.
    pub(super) fn of(secret: &str) -> Self {
        let mut whole = BTreeSet::from([secret.to_owned(), json(secret), hex(secret, false), hex(secret, true)]);
        for is_plain in [is_unreserved, is_plain_in_form, is_plain_in_query] {
            for is_upper in [false, true] {
                let url = percent(secret, is_plain, is_upper);
                whole.insert(url.replace("%20", "+"));
                whole.insert(url);
            }
        }
        let base64 = ALPHABETS.iter().flat_map(|letters| (0..3).map(|before| base64_amid(secret, before, letters)));
        Self { whole, base64: base64.collect() }
    }
}

/// As it stands between the quotes of a JSON string.
fn json(secret: &str) -> String {
    let quoted = serde_json::Value::from(secret).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn hex(secret: &str, is_upper: bool) -> String {
    secret.bytes().fold(String::with_capacity(2 * secret.len()), |mut hex, byte| {
        // Writing to a text cannot fail.
        let _ = if is_upper { write!(hex, "{byte:02X}") } else { write!(hex, "{byte:02x}") };
        hex
    })
}

/// RFC 3986 §2.3.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// URL standard, `application/x-www-form-urlencoded`.
fn is_plain_in_form(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._*".contains(&byte)
}

/// URL standard, the query percent-encode set: what a URL that is read and written again keeps.
fn is_plain_in_query(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"#<>".contains(&byte)
}

fn percent(secret: &str, is_plain: fn(u8) -> bool, is_upper: bool) -> String {
    secret.bytes().fold(String::with_capacity(secret.len()), |mut text, byte| {
        let _ = match (is_plain(byte), is_upper) {
            (true, _) => write!(text, "{}", char::from(byte)),
            (false, true) => write!(text, "%{byte:02X}"),
            (false, false) => write!(text, "%{byte:02x}"),
        };
        text
    })
}

/// The characters that are the same whatever stands around the secret, when `before` bytes modulo three precede it.
fn base64_amid(secret: &str, before: usize, letters: &[u8; 64]) -> String {
    let bits = 8 * (before + secret.len());
    let byte = |at: usize| at.checked_sub(before).and_then(|at| secret.as_bytes().get(at)).copied().unwrap_or(0);
    let whole = (8 * before).div_ceil(6)..bits / 6;
    let letter = |character: usize| {
        let bit = 6 * character;
        let pair = u16::from(byte(bit / 8)) << 8 | u16::from(byte(bit / 8 + 1));
        char::from(letters[usize::from(pair >> (10 - bit % 8) & 0x3f)])
    };
    whole.map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_a_form_json_and_hexadecimal_spell_it_their_way() {
        let whole = Forms::of("p&s \"w/\n~").whole;
        for spelling in [
            "p&s \"w/\n~",
            r#"p&s \"w/\n~"#,
            "p%26s%20%22w%2F%0A~",
            "p%26s%20%22w%2f%0a~",
            "p%26s+%22w%2F%0A%7E",
            "p&s%20%22w/%0A~",
            "7026732022772f0a7e",
            "7026732022772F0A7E",
        ] {
            assert!(whole.contains(spelling), "{spelling} of {whole:?}");
        }
    }

    #[test]
    fn of_base64_the_characters_that_no_neighbour_changes_are_known() {
        // RFC 4648 §10: `foobar` is `Zm9vYmFy`; `Zm9vYmE=` is `fooba`.
        let base64 = Forms::of("foobar").base64;
        assert_eq!(base64, BTreeSet::from(["Zm9vYmFy", "Zvb2Jhc", "mb29iYX"].map(str::to_owned)));
        assert!(Forms::of("fooba").base64.contains("Zm9vYm"));
        let both = Forms::of("\u{fb}\u{ff}\u{fb}\u{ff}").base64;
        assert!(both.iter().any(|text| text.contains('_')) && both.iter().any(|text| text.contains('/')), "{both:?}");
    }
}
