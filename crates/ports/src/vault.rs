//! What is stored encrypted (contract 7.7, architecture.md §2).

use caribou_core::config::Secret;

/// Encrypts for one place and decrypts only what came from that place.
pub trait Vault: Send + Sync + 'static {
    /// Encrypts with the first key of the ring.
    fn seal(&self, place: &Place, secret: &Secret) -> Vec<u8>;

    /// Decrypts with the key that the envelope names.
    ///
    /// # Errors
    /// No key of the ring, another place, damaged. Consumers treat the value as missing (contract 7.7).
    fn open(&self, place: &Place, sealed: &[u8]) -> Result<Opened, NotOpened>;
}

/// Where a ciphertext stands: part of what is authenticated, so that it cannot be moved (invariant O3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The table.
    pub table: &'static str,
    /// The column.
    pub column: &'static str,
    /// The row, unambiguous within the table.
    pub row: String,
    /// The row's generation; 0 where it has none.
    pub generation: u64,
}

/// A decrypted value.
pub struct Opened {
    /// The value.
    pub secret: Secret,
    /// Whether the first key of the ring sealed it; else it waits for `caribou keys rotate`.
    pub is_current: bool,
}

/// Why a value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened {
    /// Sealed with a key that is not in the ring.
    #[error("it was encrypted with another key: every instance needs the same CARIBOU_CREDENTIALS_KEY")]
    UnknownKey,
    /// Changed, or moved from another row or column.
    #[error("it was damaged, or belongs to another row")]
    Damaged,
}
