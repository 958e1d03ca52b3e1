//! One public key of an issuer, as far as it may verify tokens (RFC 7517 §4).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;

/// Keys of one set that are looked at: beyond what any issuer rotates through.
const MAX_KEYS: usize = 100;

/// The shortest modulus of an RSA key that is believed, in bytes (RFC 7518 §3.3).
const SHORTEST_MODULUS: usize = 256;

/// A key, and for which signatures.
#[derive(Clone)]
pub(super) struct VerifyingKey {
    kid: Option<String>,
    algorithms: Vec<Algorithm>,
    pub(super) key: DecodingKey,
}

impl VerifyingKey {
    /// Whether it may have signed a token whose header names these.
    pub(super) fn suits(&self, kid: Option<&str>, algorithm: Algorithm) -> bool {
        kid.is_none_or(|kid| self.kid.as_deref() == Some(kid)) && self.algorithms.contains(&algorithm)
    }

    /// `None` when it is no key that verifies: of another use, a secret one, too weak, or of a kind we do not know.
    fn read(jwk: &Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(jwk.clone()).ok()?;
        let is_for_signatures = jwk.common.public_key_use.as_ref().is_none_or(|is| *is == PublicKeyUse::Signature);
        let verifies = jwk.common.key_operations.as_ref().is_none_or(|list| list.contains(&KeyOperations::Verify));
        if !is_for_signatures || !verifies {
            return None;
        }
        let mut algorithms = algorithms(&jwk.algorithm);
        if let Some(only) = jwk.common.key_algorithm {
            algorithms.retain(|algorithm| Algorithm::try_from(only).as_ref() == Ok(algorithm));
        }
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        (!algorithms.is_empty()).then(|| Self { kid: jwk.common.key_id, algorithms, key })
    }
}

/// What a key of this kind signs. None of these is a secret that issuer and replica share.
fn algorithms(parameters: &AlgorithmParameters) -> Vec<Algorithm> {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    let modulus = |n: &str| URL_SAFE_NO_PAD.decode(n).map_or(0, |n| n.iter().skip_while(|byte| **byte == 0).count());
    match parameters {
        AlgorithmParameters::RSA(rsa) if modulus(&rsa.n) >= SHORTEST_MODULUS => {
            vec![RS256, RS384, RS512, PS256, PS384, PS512]
        }
        AlgorithmParameters::EllipticCurve(ec) if ec.curve == EllipticCurve::P256 => vec![ES256],
        AlgorithmParameters::EllipticCurve(ec) if ec.curve == EllipticCurve::P384 => vec![ES384],
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => vec![EdDSA],
        _ => Vec::new(),
    }
}

/// The keys of a set that may verify tokens; others stand in it by right and are passed over.
///
/// # Errors
/// It is no key set.
pub(super) fn read_set(text: &[u8]) -> Result<Vec<VerifyingKey>, &'static str> {
    let set: Value = serde_json::from_slice(text).map_err(|_| "it is no JSON")?;
    let keys = set.get("keys").and_then(Value::as_array).ok_or("it has no list `keys`")?;
    let keys: Vec<_> = keys.iter().take(MAX_KEYS).filter_map(VerifyingKey::read).collect();
    if keys.is_empty() { Err("none of its keys verifies signatures") } else { Ok(keys) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(key: Value) -> Option<Vec<Algorithm>> {
        let set = json!({ "keys": [key] }).to_string();
        read_set(set.as_bytes()).ok().map(|keys| keys[0].algorithms.clone())
    }

    #[test]
    fn only_public_keys_for_signatures_are_taken() {
        let okp = |more: Value| {
            let mut key = json!({"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": URL_SAFE_NO_PAD.encode([7; 32])});
            key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            read(key)
        };
        assert_eq!(okp(json!({})), Some(vec![Algorithm::EdDSA]));
        assert_eq!(okp(json!({"use": "sig", "key_ops": ["verify"], "alg": "EdDSA"})), Some(vec![Algorithm::EdDSA]));
        for other in [json!({"use": "enc"}), json!({"key_ops": ["sign"]}), json!({"alg": "ES256"}), json!({"kid": 1})] {
            assert_eq!(okp(other.clone()), None, "{other}");
        }
        assert_eq!(read(json!({"kty": "oct", "kid": "a", "k": URL_SAFE_NO_PAD.encode([7; 32])})), None);
    }

    #[test]
    fn a_short_rsa_key_is_passed_over() {
        let rsa = |bytes: usize, leading: &[u8]| {
            let n = [leading, &vec![0xd1; bytes]].concat();
            read(json!({"kty": "RSA", "n": URL_SAFE_NO_PAD.encode(n), "e": "AQAB"})).map(|list| list.len())
        };
        assert_eq!((rsa(256, &[]), rsa(256, &[0])), (Some(6), Some(6)));
        assert_eq!((rsa(128, &[]), rsa(128, &[0; 128])), (None, None));
    }

    #[test]
    fn a_key_suits_its_own_name_and_algorithms() {
        let x = URL_SAFE_NO_PAD.encode([7; 32]);
        let set = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": x}, 7]}).to_string();
        let key = &read_set(set.as_bytes()).unwrap()[0];
        assert!(key.suits(Some("a"), Algorithm::EdDSA) && key.suits(None, Algorithm::EdDSA));
        assert!(!key.suits(Some("b"), Algorithm::EdDSA) && !key.suits(Some("a"), Algorithm::RS256));
    }

    #[test]
    fn what_is_no_key_set_is_told() {
        for (text, why) in [("<html>", "no JSON"), ("{}", "no list"), (r#"{"keys":[]}"#, "none of its keys")] {
            let told = read_set(text.as_bytes()).err().unwrap();
            assert!(told.contains(why), "{told}");
        }
    }
}
