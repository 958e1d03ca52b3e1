//! The envelope: `version(1) ‖ key id(4) ‖ nonce(24) ‖ ciphertext and tag`, XChaCha20-Poly1305.
//!
//! What is authenticated beside the value: the version, the id of the key, and the place, each part of it behind its
//! own length, so that no two places are written alike. A nonce of 24 random bytes needs no counting.

use std::fmt;

use caribou_core::config::Secret;
use caribou_ports::vault::{NotOpened, Opened, Place, Vault};
use chacha20poly1305::aead::{Aead as _, Generate as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::Zeroize as _;

use super::key::Key;
use super::ring::KeyRing;

const VERSION: u8 = 1;

/// Version and key id.
const HEAD: usize = 5;

/// Bytes of a nonce.
const NONCE: usize = 24;

/// Encrypts and decrypts with the keys of one ring.
pub struct Cipher {
    ring: KeyRing,
}

impl Cipher {
    /// One over these keys.
    pub fn new(ring: KeyRing) -> Self {
        Self { ring }
    }
}

impl Vault for Cipher {
    fn seal(&self, place: &Place, secret: &Secret) -> Vec<u8> {
        let key = self.ring.first();
        let mut envelope = vec![VERSION];
        envelope.extend(key.id());
        let nonce = XNonce::generate();
        let payload = Payload { msg: secret.expose().as_bytes(), aad: &authenticated(&envelope, place) };
        let sealed = cipher(key, place)
            .encrypt(&nonce, payload)
            .expect("only a value of 256 GB or more cannot be encrypted, and none fits the memory");
        envelope.extend(nonce);
        envelope.extend(sealed);
        envelope
    }

    fn open(&self, place: &Place, sealed: &[u8]) -> Result<Opened, NotOpened> {
        let (head, rest) = sealed.split_at_checked(HEAD).ok_or(NotOpened::Damaged)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE).ok_or(NotOpened::Damaged)?;
        let nonce = XNonce::try_from(nonce).map_err(|_| NotOpened::Damaged)?;
        if head[0] != VERSION {
            return Err(NotOpened::Damaged);
        }
        let aad = authenticated(head, place);
        let mut named = self.ring.all().enumerate().filter(|(_, key)| key.id()[..] == head[1..]).peekable();
        if named.peek().is_none() {
            return Err(NotOpened::UnknownKey);
        }
        for (at, key) in named {
            let Ok(opened) = cipher(key, place).decrypt(&nonce, Payload { msg: sealed, aad: &aad }) else { continue };
            let text = String::from_utf8(opened).map_err(|error| {
                error.into_bytes().zeroize();
                NotOpened::Damaged
            })?;
            return Ok(Opened { secret: Secret::new(text), is_current: at == 0 });
        }
        Err(NotOpened::Damaged)
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher(***)")
    }
}

fn cipher(key: &Key, place: &Place) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&chacha20poly1305::Key::from(*key.of_table(place.table)))
}

/// The head and the place as bytes that no other head and place have.
fn authenticated(head: &[u8], place: &Place) -> Vec<u8> {
    let Place { table, column, row, generation } = place;
    let mut bytes = head.to_vec();
    for part in [*table, column, row.as_str()] {
        bytes.extend((part.len() as u64).to_be_bytes());
        bytes.extend(part.as_bytes());
    }
    bytes.extend(generation.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TABLES: [&str; 3] = ["mcp_connection", "mcp_connectio", "other"];
    const COLUMNS: [&str; 3] = ["sealed", "n_sealed", "other"];

    fn place() -> impl Strategy<Value = Place> {
        let row = prop_oneof!["[a-c]{0,3}", ".{0,20}"];
        (prop::sample::select(&TABLES[..]), prop::sample::select(&COLUMNS[..]), row, 0..3u64)
            .prop_map(|(table, column, row, generation)| Place { table, column, row, generation })
    }

    fn key(byte: u8) -> Key {
        use base64::Engine as _;
        Key::parse(&base64::engine::general_purpose::URL_SAFE.encode([byte; 32])).unwrap()
    }

    fn ring(bytes: &[u8]) -> Cipher {
        let text: Vec<String> = bytes.iter().map(|byte| key(*byte).expose().to_string()).collect();
        let variable = |name: &str| (name == super::super::CREDENTIALS_KEY).then(|| text.join(","));
        Cipher::new(KeyRing::from_variables(&variable).unwrap().unwrap())
    }

    fn opened(cipher: &Cipher, place: &Place, sealed: &[u8]) -> Result<(String, bool), NotOpened> {
        cipher.open(place, sealed).map(|opened| (opened.secret.expose().to_owned(), opened.is_current))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_was_sealed_is_opened_in_its_place_and_nowhere_else(here in place(), there in place(), text in ".{0,80}") {
            // Invariant O3: a ciphertext moved to another row, column or generation is refused.
            let cipher = ring(&[1]);
            let sealed = cipher.seal(&here, &Secret::new(text.clone()));
            prop_assert_eq!(opened(&cipher, &here, &sealed), Ok((text.clone(), true)));
            if here != there {
                prop_assert_eq!(opened(&cipher, &there, &sealed), Err(NotOpened::Damaged));
            }
            prop_assert!(text.len() < 4 || !sealed.windows(text.len()).any(|part| part == text.as_bytes()));
        }

        #[test]
        fn one_that_was_cut_or_is_anything_else_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let place = Place { table: "t", column: "c", row: "r".into(), generation: 0 };
            prop_assert!(ring(&[1]).open(&place, &bytes).is_err());
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_refused() {
        // Invariant O3.
        let cipher = ring(&[1]);
        let place = Place { table: "t", column: "c", row: "r".into(), generation: 7 };
        let sealed = cipher.seal(&place, &Secret::new("hunter2"));
        assert_eq!(sealed.len(), "hunter2".len() + 45);
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(cipher.open(&place, &flipped).is_err(), "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert!(cipher.open(&place, &sealed[..length]).is_err(), "{length} bytes");
        }
        assert_ne!(sealed, cipher.seal(&place, &Secret::new("hunter2")), "a nonce is never used twice");
    }

    #[test]
    fn the_first_key_encrypts_and_all_decrypt() {
        // Contract 7.7, variable and wrong key.
        let place = Place { table: "t", column: "c", row: "r".into(), generation: 0 };
        let old = ring(&[1]).seal(&place, &Secret::new("hunter2"));
        let rotated = ring(&[2, 1]);
        assert_eq!(opened(&rotated, &place, &old), Ok(("hunter2".to_owned(), false)));
        let new = rotated.seal(&place, &Secret::new("hunter2"));
        assert_eq!(opened(&rotated, &place, &new), Ok(("hunter2".to_owned(), true)));
        assert_eq!(opened(&ring(&[2]), &place, &new), Ok(("hunter2".to_owned(), true)));
        assert_eq!(opened(&ring(&[2]), &place, &old), Err(NotOpened::UnknownKey));
        assert!(!format!("{rotated:?} {:?}", rotated.open(&place, &old).map(|_| ()).err()).contains("hunter2"));
    }
}
