//! One key: 32 random bytes, written as 44 characters (contract 7.7).
//!
//! Nothing is encrypted with the key itself: each table has a key derived from it (HKDF-SHA256, RFC 5869), and so has
//! the short id that an envelope names it by. Wiped from memory when it is dropped.

use std::{fmt, io};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::{Zeroize as _, Zeroizing};

/// Bytes of a key.
const BYTES: usize = 32;

/// Characters of a key as it is written: URL-safe base64 with its padding.
const CHARACTERS: usize = 44;

/// Says what a derived value is for, so that no two uses share one.
const ID_INFO: &[&[u8]] = &[b"caribou key id v1"];

/// One key.
#[derive(Clone)]
pub struct Key(Zeroizing<[u8; BYTES]>);

impl Key {
    /// A new one, of the system's random numbers.
    ///
    /// # Errors
    /// The system has none to give.
    pub fn generate() -> io::Result<Self> {
        let mut bytes = Zeroizing::new([0; BYTES]);
        getrandom::fill(&mut bytes[..]).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self(bytes))
    }

    /// Reads one as it is written; `None` when it is none.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != CHARACTERS || !text.ends_with('=') {
            return None;
        }
        let mut read = URL_SAFE.decode(text).ok()?;
        let bytes = <[u8; BYTES]>::try_from(&read[..]).ok();
        read.zeroize();
        bytes.map(|bytes| Self(Zeroizing::new(bytes)))
    }

    /// How it is written, for the one place that hands it to a person or a file.
    pub fn expose(&self) -> Zeroizing<String> {
        Zeroizing::new(URL_SAFE.encode(&self.0[..]))
    }

    /// A key for something else than encryption, made of this one. Tells nothing about it.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        derived_key(&self.0[..], purpose)
    }

    /// What an envelope names it by. Tells nothing about the key; two keys may share one.
    pub(super) fn id(&self) -> [u8; 4] {
        self.derived(ID_INFO)
    }

    /// The key that is used for `table`.
    pub(super) fn of_table(&self, table: &str) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.derived(&[b"caribou at rest v1 ", table.as_bytes()]))
    }

    fn derived<const N: usize>(&self, info: &[&[u8]]) -> [u8; N] {
        let mut derived = [0; N];
        Hkdf::<Sha256>::new(None, &self.0[..])
            .expand_multi_info(info, &mut derived)
            .expect("HKDF-SHA256 expands to 255 times 32 bytes, far more than any N here");
        derived
    }
}

/// A key for `purpose`, made of a secret that has enough to guess in it (HKDF-SHA256). Tells nothing about it.
pub fn derived_key(secret: &[u8], purpose: &str) -> [u8; 32] {
    let mut derived = [0; 32];
    Hkdf::<Sha256>::new(None, secret)
        .expand_multi_info(&[b"caribou derived v1 ", purpose.as_bytes()], &mut derived)
        .expect("HKDF-SHA256 expands to 255 times 32 bytes");
    derived
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_as_it_was_written_and_nothing_else_is_one() {
        // Contract 7.7, variable.
        let key = Key::generate().unwrap();
        let text = key.expose();
        assert_eq!((text.len(), Key::parse(&text).unwrap().expose()), (44, text.clone()));
        assert_ne!(Key::generate().unwrap().expose(), text);
        let unpadded = text.trim_end_matches('=').to_owned();
        for wrong in ["", "hunter2", &unpadded, &format!("{}=", *text), &"+".repeat(44), &format!("{}!=", &text[..42])]
        {
            assert!(Key::parse(wrong).is_none(), "{wrong}");
        }
        assert!(Key::parse("-__-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").is_some(), "URL-safe");
    }

    #[test]
    fn nothing_of_a_key_is_printed_and_each_use_has_its_own() {
        // Invariant O3.
        let key = Key(Zeroizing::new([7; 32]));
        assert_eq!(format!("{key:?}"), "Key(***)");
        assert_ne!(key.of_table("a"), key.of_table("b"));
        assert_ne!(key.id()[..], key.of_table("a")[..4]);
        assert_ne!(key.derive("a"), *key.of_table("a"));
        assert_ne!(key.derive("a"), key.derive("b"));
        assert_eq!(key.derive("a"), derived_key(&[7; 32], "a"));
        assert_ne!(key.id(), Key(Zeroizing::new([8; 32])).id());
    }
}
