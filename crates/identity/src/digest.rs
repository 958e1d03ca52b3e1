//! Names a credential without holding it.
//!
//! Keyed by a label and not by a secret: whoever reads the hash of 256 random bits cannot find them, so a secret of our
//! own would add nothing but a second thing to lose. The label keeps a hash from meaning anything elsewhere.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// HMAC-SHA256 of `credential` under `label`.
pub(crate) fn digest(label: &[u8], credential: &str) -> [u8; 32] {
    // An HMAC takes a key of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(label) else { return [0; 32] };
    mac.update(credential.as_bytes());
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_label_gives_each_credential_its_own_name() {
        // RFC 4231 §4.3, test case 2.
        let known = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let hex: String =
            digest(b"Jefe", "what do ya want for nothing?").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, known);
        assert_ne!(digest(b"a", "x"), digest(b"b", "x"));
        assert_ne!(digest(b"a", "x"), digest(b"a", "y"));
    }
}
