//! Encryption of what is stored (contract 7.7, architecture.md §2).
//!
//! [`key`] is one key and what is derived from it, [`ring`] the keys of a replica, [`key_file`] where they come from
//! when nobody configured any, [`cipher`] the envelope. A value that cannot be decrypted is told apart and never
//! guessed at: consumers treat it as missing. Keeps O3: nothing here is printable, and a ciphertext that was moved to
//! another row, column or generation is refused.

mod cipher;
mod key;
mod key_file;
mod ring;

pub use cipher::Cipher;
pub use key::{Key, derived_key};
pub use key_file::{KeyFileError, key_file, present_key_file};
pub use ring::{BadKey, CREDENTIALS_KEY, CREDENTIALS_KEY_ALIAS, KeyRing};
