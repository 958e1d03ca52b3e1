//! Settings on who may call (architecture.md §2, "identity of callers").
//!
//! Owns which of them belong together; what a key or a token must look like is the identity adapters' to say.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use caribou_core::identity::{ClaimNames, Rate};
use caribou_identity::{ALGORITHMS, JwtRules, KeySource};
use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// Five minutes: clocks that differ by more are broken, and a longer leeway is a longer life of every token.
const LONGEST_LEEWAY_SECONDS: u64 = 300;

/// Who may call, and how often.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    /// How callers are told apart.
    #[garde(skip)]
    pub mode: AuthMode,
    /// Which tokens are believed, with `mode: jwt`.
    #[garde(dive)]
    pub jwt: JwtAuth,
    /// How often each caller may ask.
    #[garde(dive)]
    pub rate_limit: RateLimit,
}

/// How callers are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthMode {
    /// Not at all: all may everything, so only loopback addresses are listened on.
    #[default]
    Disabled,
    /// By keys that `caribou keys create` makes.
    ApiKeys,
    /// By tokens of an issuer.
    Jwt,
}

/// Which tokens are believed. They are sent as `Authorization: Bearer ...`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct JwtAuth {
    /// Where the issuer publishes its keys: `https://...`, or `http://` on this machine. Fetched again when a token
    /// names a key that is not among them, at most once a minute.
    #[garde(inner(custom(key_set_address)))]
    pub jwks_url: Option<String>,
    /// The same as a file, for machines that reach no issuer. A relative path in a file counts from that file's folder.
    #[garde(skip)]
    pub jwks_file: Option<PathBuf>,
    /// What the claim `iss` must be.
    #[garde(inner(length(min = 1)))]
    pub issuer: Option<String>,
    /// One of these must be in the claim `aud`. As one environment variable: texts separated by commas.
    #[garde(inner(length(min = 1)))]
    pub audience: Vec<String>,
    /// How far the clocks of issuer and replica may differ, in seconds.
    #[garde(range(min = 0, max = LONGEST_LEEWAY_SECONDS))]
    pub leeway_seconds: u64,
    /// Signatures that are believed, among RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and EdDSA. As one
    /// environment variable: names separated by commas.
    #[garde(length(min = 1), inner(custom(algorithm)))]
    pub algorithms: Vec<String>,
    /// The claim that holds the user.
    #[garde(length(min = 1))]
    pub user_claim: String,
    /// The claim that holds roles, `admin` and `agent` among them: a list, or one text with blanks between. A claim
    /// inside another one is written with dots, such as `realm_access.roles`.
    #[garde(length(min = 1))]
    pub roles_claim: String,
}

/// How often each caller may ask. Health, metrics and the description of the API are not counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct RateLimit {
    /// Requests a second in the long run. When absent there is no limit.
    #[garde(inner(range(min = 0.001, max = 1_000_000.0)))]
    pub calls_per_second: Option<f64>,
    /// Requests at once after a pause. When absent: those of one second, at least one.
    #[garde(inner(range(min = 1, max = 1_000_000)))]
    pub burst: Option<u32>,
}

impl Default for JwtAuth {
    fn default() -> Self {
        Self {
            jwks_url: None,
            jwks_file: None,
            issuer: None,
            audience: Vec::new(),
            leeway_seconds: 30,
            algorithms: ["RS256", "ES256", "EdDSA"].map(str::to_owned).into(),
            user_claim: "sub".to_owned(),
            roles_claim: "roles".to_owned(),
        }
    }
}

/// A setting that others make necessary, or forbid.
pub(super) struct Missing {
    /// Its path.
    pub(super) path: &'static str,
    /// What is wrong.
    pub(super) what: &'static str,
    /// How to mend it.
    pub(super) mend: &'static str,
}

impl Auth {
    /// What `mode` needs and is not there. Each setting is right by itself.
    pub(super) fn missing(&self) -> Vec<Missing> {
        if self.mode != AuthMode::Jwt {
            return Vec::new();
        }
        let JwtAuth { jwks_url, jwks_file, issuer, audience, .. } = &self.jwt;
        let mut missing = Vec::new();
        let mut demand = |path, what, mend, is_met: bool| {
            if !is_met {
                missing.push(Missing { path, what, mend });
            }
        };
        demand(
            "auth.jwt.jwks_url",
            "with `auth.mode: jwt` the issuer's keys come from one place",
            "write either this or `auth.jwt.jwks_file`",
            jwks_url.is_some() != jwks_file.is_some(),
        );
        let needed = "with `auth.mode: jwt` this is needed";
        demand("auth.jwt.issuer", needed, "write what the issuer puts into the claim `iss`", issuer.is_some());
        demand(
            "auth.jwt.audience",
            needed,
            "write what the issuer puts into the claim `aud` of tokens for Caribou: without it a token for any other \
             service would do",
            !audience.is_empty(),
        );
        missing
    }

    /// Whether this address may be listened on.
    ///
    /// # Errors
    /// Other machines can reach it, and nobody tells callers apart.
    pub fn may_listen(&self, address: SocketAddr) -> Result<(), NotLoopback> {
        match self.mode == AuthMode::Disabled && !address.ip().to_canonical().is_loopback() {
            true => Err(NotLoopback(address)),
            false => Ok(()),
        }
    }
}

/// An address that other machines can reach, while nobody tells callers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`auth.mode` is `disabled`, so whoever reaches Caribou may everything, and {0} can be reached from other machines: \
     set `auth.mode` to `api_keys` or `jwt`, or listen on 127.0.0.1:{port}",
    port = .0.port()
)]
pub struct NotLoopback(SocketAddr);

impl JwtAuth {
    /// Where the keys come from and what a token must say; `None` when something of it is missing.
    pub fn rules(&self) -> Option<(KeySource, JwtRules)> {
        let file = self.jwks_file.clone().map(KeySource::File);
        let url = self.jwks_url.as_ref().and_then(|url| Url::parse(url).ok());
        let rules = JwtRules {
            issuer: self.issuer.clone()?,
            audience: self.audience.clone(),
            leeway: Duration::from_secs(self.leeway_seconds),
            algorithms: self.algorithms.clone(),
            claims: ClaimNames { user: self.user_claim.clone(), roles: self.roles_claim.clone() },
        };
        Some((file.or(url.map(KeySource::Url))?, rules))
    }
}

impl RateLimit {
    /// The limit, if there is one.
    pub fn rate(&self) -> Option<Rate> {
        let per_second = self.calls_per_second?;
        // Within the bounds above, so the cast cuts nothing off.
        let burst = self.burst.unwrap_or(per_second.ceil() as u32);
        Rate::new(per_second, burst.max(1))
    }
}

fn algorithm(name: &str, _: &()) -> garde::Result {
    if ALGORITHMS.contains(&name) { Ok(()) } else { Err(garde::Error::new("not a signature that is believed")) }
}

fn key_set_address(address: &str, _: &()) -> garde::Result {
    let is_loopback = |url: &Url| match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let good = Url::parse(address).is_ok_and(|url| match url.scheme() {
        "https" => url.has_host(),
        // Whoever changes the answer on its way could sign every token.
        "http" => is_loopback(&url),
        _ => false,
    });
    if good { Ok(()) } else { Err(garde::Error::new("not an address of a key set")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auth(mode: AuthMode) -> Auth {
        Auth { mode, ..Auth::default() }
    }

    #[test]
    fn only_loopback_is_listened_on_while_callers_are_not_told_apart() {
        // Architecture §2, identity of callers.
        for address in ["127.0.0.1:0", "127.9.9.9:80", "[::1]:8750", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(auth(AuthMode::Disabled).may_listen(address.parse().unwrap()), Ok(()), "{address}");
        }
        for address in ["0.0.0.0:8750", "[::]:8750", "192.168.1.4:8750"] {
            let address = address.parse().unwrap();
            let refused = auth(AuthMode::Disabled).may_listen(address).unwrap_err().to_string();
            assert!(refused.contains("auth.mode") && refused.contains("127.0.0.1:8750"), "{refused}");
            assert_eq!(auth(AuthMode::ApiKeys).may_listen(address), Ok(()));
            assert_eq!(auth(AuthMode::Jwt).may_listen(address), Ok(()));
        }
    }

    #[test]
    fn tokens_need_one_source_of_keys_an_issuer_and_an_audience() {
        let paths = |auth: &Auth| auth.missing().iter().map(|missing| missing.path).collect::<Vec<_>>();
        assert_eq!(paths(&auth(AuthMode::ApiKeys)), [""; 0]);
        let mut tokens = auth(AuthMode::Jwt);
        assert_eq!(paths(&tokens), ["auth.jwt.jwks_url", "auth.jwt.issuer", "auth.jwt.audience"]);
        assert_eq!(tokens.jwt.rules(), None);
        tokens.jwt = JwtAuth {
            jwks_file: Some("/keys.json".into()),
            issuer: Some("i".to_owned()),
            audience: vec!["a".to_owned()],
            ..JwtAuth::default()
        };
        assert_eq!(paths(&tokens), [""; 0]);
        assert!(matches!(tokens.jwt.rules(), Some((KeySource::File(_), _))));
        tokens.jwt.jwks_url = Some("https://issuer.example/keys".to_owned());
        assert_eq!(paths(&tokens), ["auth.jwt.jwks_url"], "two sources");
    }

    #[test]
    fn only_safe_addresses_and_algorithms_are_settings() {
        for good in ["https://issuer.example/keys", "http://127.0.0.1:1/k", "http://localhost/k", "http://[::1]/k"] {
            assert!(key_set_address(good, &()).is_ok(), "{good}");
        }
        for bad in ["http://issuer.example/keys", "http://10.0.0.1/k", "file:///k", "keys.json", ""] {
            assert!(key_set_address(bad, &()).is_err(), "{bad}");
        }
        for name in ["none", "HS256", "HS512", "rs256", ""] {
            assert!(algorithm(name, &()).is_err(), "{name}");
        }
        assert!(JwtAuth::default().validate().is_ok());
    }

    #[test]
    fn a_rate_without_a_burst_lets_a_seconds_worth_through() {
        let rate = |per_second, burst| RateLimit { calls_per_second: per_second, burst }.rate();
        assert_eq!(rate(None, Some(3)), None);
        assert_eq!(rate(Some(2.5), None), Rate::new(2.5, 3));
        assert_eq!(rate(Some(0.1), None), Rate::new(0.1, 1));
        assert_eq!(rate(Some(5.0), Some(20)), Rate::new(5.0, 20));
    }
}
