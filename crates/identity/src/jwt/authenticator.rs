//! Which tokens are believed, and whom they speak of.
//!
//! The algorithm is one of the operator's list and fits the kind of the key; issuer, audience and expiry must be there;
//! `nbf` holds when it is there. A verified token is remembered for `TOKEN_BELIEVED` at most, never beyond its expiry,
//! and not across a change of the issuer's keys.

use std::time::Duration;

use caribou_core::bounds;
use caribou_core::config::Secret;
use caribou_core::identity::{ClaimNames, Principal};
use caribou_ports::BoxFuture;
use caribou_ports::identity::{Authenticator, Unauthenticated};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header, get_current_timestamp};
use serde_json::Value;

use super::key_set::KeySet;
use super::source::{KeySource, Reader, UnusableKeys};
use crate::digest::digest;
use crate::remembered::Remembered;

/// Signatures that can be believed: those of public keys. A shared secret would let every replica sign, and `none`
/// anybody (RFC 8725 §3.1, §3.2).
pub const ALGORITHMS: [&str; 9] = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

/// What the digests of remembered tokens are made under.
const LABEL: &[u8] = b"caribou token 1";

/// What a token must say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtRules {
    /// The claim `iss`.
    pub issuer: String,
    /// One of these is in the claim `aud`.
    pub audience: Vec<String>,
    /// How far two clocks may differ.
    pub leeway: Duration,
    /// Names of [`ALGORITHMS`]; others are passed over.
    pub algorithms: Vec<String>,
    /// Where user and roles stand.
    pub claims: ClaimNames,
}

/// Callers that present a token.
pub struct JwtCallers {
    keys: KeySet,
    algorithms: Vec<Algorithm>,
    validation: Validation,
    claims: ClaimNames,
    known: Remembered<Principal>,
}

impl JwtCallers {
    /// Callers with tokens of the issuer whose keys are at `source`. `client` says how the network is reached. An
    /// issuer that cannot be reached now is asked again when somebody calls.
    ///
    /// # Errors
    /// The file of keys cannot be used.
    pub async fn start(
        source: KeySource,
        rules: JwtRules,
        client: reqwest::ClientBuilder,
    ) -> Result<Self, UnusableKeys> {
        let file = match &source {
            KeySource::File(file) => Some(file.display().to_string()),
            KeySource::Url(_) => None,
        };
        let keys = KeySet::new(Reader::new(source, client)?);
        match (keys.begin().await, file) {
            (Ok(()), _) => {}
            (Err(why), Some(file)) => return Err(UnusableKeys::File { file, why }),
            (Err(why), None) => tracing::warn!("the key set of the tokens' issuer cannot be read yet: {why}"),
        }
        let known = Remembered::new(bounds::MAX_REMEMBERED_CALLERS);
        let named = rules.algorithms.iter().filter(|name| ALGORITHMS.contains(&name.as_str()));
        let algorithms = named.filter_map(|name| name.parse().ok()).collect();
        Ok(Self { keys, algorithms, validation: validation(&rules), claims: rules.claims, known })
    }

    async fn verify(&self, token: &str, name: [u8; 32]) -> Result<Principal, Unauthenticated> {
        let header = decode_header(token).map_err(|_| refused("it is no signed token that is understood"))?;
        if !self.algorithms.contains(&header.alg) {
            return Err(refused("its algorithm is not among `auth.jwt.algorithms`"));
        }
        let found = self.keys.find(header.kid.as_deref(), header.alg).await?;
        if found.is_new {
            self.known.clear();
        }
        let validation = Validation { algorithms: vec![header.alg], ..self.validation.clone() };
        let mut failure = refused("its issuer publishes no key that may have signed it");
        for key in found.keys {
            match decode::<Value>(token, &key.key, &validation) {
                Ok(decoded) => return self.believe(&decoded.claims, name),
                Err(error) => failure = told(error.kind()),
            }
        }
        Err(failure)
    }

    fn believe(&self, claims: &Value, name: [u8; 32]) -> Result<Principal, Unauthenticated> {
        let principal = self.claims.principal(claims).map_err(|fault| Unauthenticated::Refused(fault.to_string()))?;
        // By the clock that the expiry was just judged by: the issuer's own idea of the time is all there is.
        let now = get_current_timestamp() as f64;
        let left = claims["exp"].as_f64().map_or(0.0, |expiry| expiry + self.validation.leeway as f64 - now);
        let left = Duration::try_from_secs_f64(left).unwrap_or_default();
        self.known.put(name, principal.clone(), left.min(bounds::TOKEN_BELIEVED));
        Ok(principal)
    }
}

impl Authenticator for JwtCallers {
    fn authenticate(&self, bearer: Option<Secret>) -> BoxFuture<'_, Result<Principal, Unauthenticated>> {
        Box::pin(async move {
            let bearer = bearer.ok_or(Unauthenticated::Missing)?;
            let token = bearer.expose();
            if token.len() > bounds::MAX_BEARER_BYTES {
                return Err(refused("it is too long"));
            }
            let name = digest(LABEL, token);
            if let Some(principal) = self.known.get(&name) {
                return Ok(principal);
            }
            let late = |_| Unauthenticated::Unavailable("the issuer's keys could not be read in time".to_owned());
            tokio::time::timeout(bounds::AUTHENTICATE, self.verify(token, name)).await.map_err(late)?
        })
    }
}

fn validation(rules: &JwtRules) -> Validation {
    let mut validation = Validation::new(Algorithm::EdDSA);
    validation.set_issuer(&[&rules.issuer]);
    validation.set_audience(&rules.audience);
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    validation.validate_nbf = true;
    validation.leeway = rules.leeway.as_secs();
    validation
}

/// Why a token is not believed, without anything that stands in it.
fn told(kind: &ErrorKind) -> Unauthenticated {
    refused(match kind {
        ErrorKind::ExpiredSignature => "it has expired",
        ErrorKind::ImmatureSignature => "it is not valid yet",
        ErrorKind::InvalidIssuer => "it is of another issuer",
        ErrorKind::InvalidAudience => "it is for another service",
        ErrorKind::InvalidSignature => "its signature is wrong",
        ErrorKind::MissingRequiredClaim(_) => "one of the claims `exp`, `iss` and `aud` is missing",
        _ => "it is no signed token that is understood",
    })
}

fn refused(why: &str) -> Unauthenticated {
    Unauthenticated::Refused(format!("the token is not believed: {why}"))
}
