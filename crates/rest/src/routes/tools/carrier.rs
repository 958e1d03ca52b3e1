//! What the body of a call carries beside the call: secrets of the request, and metadata that must hold none
//! (contract 2.4, 8.5).
//!
//! Owns where they may stand. Secrets are read where `config.context.secrets` or its alias `context.secrets` holds
//! them, and nowhere else; a carrier of another form is an empty one. Nothing of them is kept, logged or answered
//! (invariant O3): what does not fit is passed over without an error, so no error can speak of it.

use std::fmt;

use caribou_core::config::Secret;
use caribou_runtime::RequestSecrets;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::problem::Problem;

/// What is read of `config`.
#[derive(Default, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct CallConfig {
    metadata: Option<Metadata>,
    #[serde(default)]
    context: Context,
}

/// What is read of metadata: whether a credential was put where none belongs.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct Metadata {
    #[serde(default, deserialize_with = "is_there")]
    auth_token: bool,
}

/// What is there counts whatever it is, `null` included.
fn is_there<'de, D: Deserializer<'de>>(member: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(member).map(|_| true)
}

/// What is read of `context`, whatever form it has.
#[derive(Default)]
pub(super) struct Context {
    secrets: Vec<(String, Secret)>,
    /// Whether its `metadata` holds a credential.
    has_token: bool,
}

/// The secrets of a request that has both carriers; where both hold a key, `config.context` wins.
///
/// # Errors
/// Metadata, which is kept and shown, holds a credential.
pub(super) fn secrets(
    metadata: Option<Metadata>,
    config: Option<CallConfig>,
    alias: Context,
) -> Result<RequestSecrets, Problem> {
    let CallConfig { metadata: of_config, context } = config.unwrap_or_default();
    let is_misplaced = [metadata, of_config].into_iter().flatten().any(|metadata| metadata.auth_token);
    if is_misplaced || context.has_token || alias.has_token {
        return Err(Problem::invalid("metadata may not hold `auth_token`: put it into `config.context.secrets`"));
    }
    let mut secrets = context.secrets;
    let of_alias = alias.secrets.into_iter();
    for (key, secret) in of_alias {
        put(&mut secrets, key, secret, false);
    }
    Ok(RequestSecrets(secrets))
}

fn put(secrets: &mut Vec<(String, Secret)>, key: String, secret: Secret, replaces: bool) {
    match secrets.iter_mut().find(|(held, _)| *held == key) {
        Some((_, held)) if replaces => *held = secret,
        Some(_) => {}
        None => secrets.push((key, secret)),
    }
}

/// Reads one value of any form: each form that is not wanted is passed over.
trait Reading<'de>: Sized {
    /// What is read.
    type Read: Default;

    fn text(self, _: &str) -> Self::Read {
        Self::Read::default()
    }

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Read, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::Read::default())
    }
}

/// A [`Reading`] as serde asks for it.
struct Lenient<R>(R);

impl<'de, R: Reading<'de>> DeserializeSeed<'de> for Lenient<R> {
    type Value = R::Read;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<R::Read, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de, R: Reading<'de>> Visitor<'de> for Lenient<R> {
    type Value = R::Read;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_str<E>(self, text: &str) -> Result<R::Read, E> {
        Ok(self.0.text(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<R::Read, A::Error> {
        self.0.object(members)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<R::Read, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(R::Read::default())
    }

    fn visit_unit<E>(self) -> Result<R::Read, E> {
        Ok(R::Read::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<R::Read, E> {
        Ok(R::Read::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<R::Read, E> {
        Ok(R::Read::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<R::Read, E> {
        Ok(R::Read::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<R::Read, E> {
        Ok(R::Read::default())
    }
}

/// `context`.
struct ReadContext;

impl<'de> Reading<'de> for ReadContext {
    type Read = Context;

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Context, A::Error> {
        let mut context = Context::default();
        while let Some(key) = members.next_key::<String>()? {
            match key.as_str() {
                "secrets" => context.secrets = members.next_value_seed(Lenient(ReadSecrets))?,
                "metadata" => context.has_token |= members.next_value_seed(Lenient(ReadMetadata))?,
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(context)
    }
}

impl<'de> Deserialize<'de> for Context {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        Lenient(ReadContext).deserialize(value)
    }
}

/// `context.metadata`: whether it holds `auth_token`.
struct ReadMetadata;

impl<'de> Reading<'de> for ReadMetadata {
    type Read = bool;

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<bool, A::Error> {
        let mut has_token = false;
        while let Some((key, _)) = members.next_entry::<String, IgnoredAny>()? {
            has_token |= key == "auth_token";
        }
        Ok(has_token)
    }
}

/// `context.secrets`: only strings count.
struct ReadSecrets;

impl<'de> Reading<'de> for ReadSecrets {
    type Read = Vec<(String, Secret)>;

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Vec<(String, Secret)>, A::Error> {
        let mut secrets = Vec::new();
        while let Some(key) = members.next_key::<String>()? {
            if let Some(secret) = members.next_value_seed(Lenient(ReadSecret))? {
                // One too many is kept, so that whoever judges their number sees it.
                if secrets.len() <= caribou_core::bounds::MAX_REQUEST_SECRETS {
                    put(&mut secrets, key, secret, true);
                }
            }
        }
        Ok(secrets)
    }
}

struct ReadSecret;

impl<'de> Reading<'de> for ReadSecret {
    type Read = Option<Secret>;

    fn text(self, text: &str) -> Option<Secret> {
        Some(Secret::new(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Body {
        metadata: Option<Metadata>,
        config: Option<CallConfig>,
        #[serde(default)]
        context: Context,
    }

    fn read(body: &str) -> Result<Vec<(String, String)>, ()> {
        let Body { metadata, config, context } = serde_json::from_str(body).expect(body);
        let secrets = secrets(metadata, config, context).map_err(|_| ())?;
        Ok(secrets.0.into_iter().map(|(key, secret)| (key, secret.expose().to_owned())).collect())
    }

    #[test]
    fn both_carriers_are_read_and_only_strings_in_them() {
        // Contract 8.5, secrets source; architecture.md §10, secrets carrier.
        let one = |key: &str, value: &str| Ok(vec![(key.to_owned(), value.to_owned())]);
        for secrets in
            [r#"{"K":"v","n":1,"o":{"x":"y"},"l":["z"],"e":null,"b":true,"f":1.5,"m":-1}"#, r#"{"K":"a","K":"v"}"#]
        {
            assert_eq!(read(&format!(r#"{{"config":{{"context":{{"secrets":{secrets}}}}}}}"#)), one("K", "v"));
            assert_eq!(read(&format!(r#"{{"context":{{"secrets":{secrets}}}}}"#)), one("K", "v"));
        }
        let both = r#"{"context":{"secrets":{"K":"alias"}},"config":{"context":{"secrets":{"K":"config"}}}}"#;
        assert_eq!(read(both), one("K", "config"));
        assert_eq!(read(r#"{"config":{"secrets":{"K":"v"}}}"#), Ok(vec![]), "nowhere else");
    }

    #[test]
    fn a_malformed_carrier_is_an_empty_one() {
        // Contract 8.5, secrets source.
        for form in ["null", "1", "-1", "1.5", "true", r#""K""#, r#"["K"]"#, "{}"] {
            for body in [
                format!(r#"{{"context":{form}}}"#),
                format!(r#"{{"context":{{"secrets":{form},"metadata":{form}}}}}"#),
                format!(r#"{{"config":{{"context":{form}}}}}"#),
                format!(r#"{{"config":{{"context":{{"other":{form},"secrets":{form}}}}}}}"#),
            ] {
                assert_eq!(read(&body), Ok(vec![]), "{body}");
            }
        }
    }

    #[test]
    fn a_credential_in_any_metadata_is_refused() {
        // Contract 2.4, run admission.
        for body in [
            r#"{"metadata":{"auth_token":"x"}}"#,
            r#"{"config":{"metadata":{"auth_token":null}}}"#,
            r#"{"config":{"context":{"metadata":{"a":1,"auth_token":{}}}}}"#,
            r#"{"context":{"secrets":{},"metadata":{"auth_token":"x"}}}"#,
        ] {
            assert_eq!(read(body), Err(()), "{body}");
        }
        assert_eq!(read(r#"{"metadata":{"a":1},"context":{"auth_token":"x"}}"#), Ok(vec![]));
    }
}
