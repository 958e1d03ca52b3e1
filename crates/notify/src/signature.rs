//! Signs what is sent to a webhook: Standard Webhooks, symmetric signatures (`v1`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caribou_core::config::Secret;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

/// What a secret begins with.
const PREFIX: &str = "whsec_";

/// Bytes of a secret: Standard Webhooks, "secret generation".
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// One secret that sender and receiver share. Never printed (invariant O3).
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

/// It is no secret of the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret of a webhook is `whsec_` and the base64 of 24 to 64 random bytes")]
pub struct NotASecret;

impl WebhookSecret {
    /// Reads `whsec_` and base64.
    ///
    /// # Errors
    /// It is something else, too short or too long.
    pub fn parse(text: &Secret) -> Result<Self, NotASecret> {
        let encoded = text.expose().strip_prefix(PREFIX).ok_or(NotASecret)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| NotASecret)?;
        if BYTES.contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(NotASecret) }
    }

    fn sign(&self, id: &str, seconds: u64, body: &[u8]) -> String {
        // An HMAC takes a key of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// `webhook-signature`: one signature for each secret, so that either side may change its own first.
pub(crate) fn signatures(secrets: &[WebhookSecret], id: &str, seconds: u64, body: &[u8]) -> String {
    let signed: Vec<String> = secrets.iter().map(|secret| secret.sign(id, seconds, body)).collect();
    signed.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Result<WebhookSecret, NotASecret> {
        WebhookSecret::parse(&Secret::new(text))
    }

    const KNOWN: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn the_known_message_has_the_known_signature() {
        // Standard Webhooks, test vector of the reference libraries.
        let known = [secret(KNOWN).unwrap()];
        let signed = signatures(&known, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn each_secret_signs_and_the_signatures_are_separated_by_blanks() {
        // Standard Webhooks, "zero downtime secret rotation".
        let newer = secret(&format!("whsec_{}", STANDARD.encode([7; 32]))).unwrap();
        let known = secret(KNOWN).unwrap();
        let both = signatures(&[newer.clone(), known.clone()], "id", 1, b"{}");
        let alone = [newer, known].map(|secret| signatures(&[secret], "id", 1, b"{}"));
        assert_eq!(both, alone.join(" "));
        assert_ne!(alone[0], alone[1]);
    }

    #[test]
    fn id_time_and_body_are_all_signed() {
        let known = [secret(KNOWN).unwrap()];
        let signed = signatures(&known, "id", 1, b"{}");
        for (id, seconds, body) in [("i", 1, &b"{}"[..]), ("id", 2, b"{}"), ("id", 1, b"{ }")] {
            assert_ne!(signatures(&known, id, seconds, body), signed);
        }
    }

    #[test]
    fn what_is_no_secret_is_refused_and_never_printed() {
        // Invariant O3.
        let long = format!("whsec_{}", STANDARD.encode([1; 65]));
        for text in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", "whsec_!", &long] {
            assert_eq!(secret(text), Err(NotASecret), "{text}");
        }
        assert_eq!(format!("{:?}", secret(KNOWN)), "Ok(***)");
    }
}
