//! Settings of the Redis that replicas tell each other of resets by (durability.md §4). Its address may hold a password:
//! it is checked when it is read, and never printed (invariant O3).

use caribou_core::config::Secret;
use caribou_signals::RedisSignal;
use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::notify::{Hidden, Readable};

/// The path of [`Redis::url`].
const URL: &str = "redis.url";

/// The variable that many platforms set for an attached Redis.
const URL_ALIAS: &str = "REDIS_URL";

/// The other name of the variable of this setting, if it has one.
pub(super) fn alias(path: &str) -> Option<&'static str> {
    (path == URL).then_some(URL_ALIAS)
}

/// A Redis, by which replicas hear of resets and changes within milliseconds. Without it they look into the database
/// every second. It holds nothing that cannot be lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Redis {
    /// Its address: `redis://host:6379`, or `rediss://user:password@host:6379` with TLS. It may hold a password, which
    /// is never printed. As an environment variable also REDIS_URL.
    #[garde(skip)]
    pub url: Option<Hidden<RedisUrl>>,
    /// How the names of its keys begin. The same for all replicas of one deployment, and no other's.
    #[garde(length(min = 1, max = 200))]
    #[schemars(length(min = 1, max = 200))]
    pub key_prefix: String,
}

impl Default for Redis {
    fn default() -> Self {
        Self { url: None, key_prefix: "caribou:default".to_owned() }
    }
}

/// The address of a Redis.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl(Secret);

impl RedisUrl {
    /// The address, for the one place that connects to it.
    pub fn address(&self) -> &Secret {
        &self.0
    }
}

impl Readable for RedisUrl {
    fn read(text: Secret) -> Result<Self, String> {
        RedisSignal::new(&text, "").map_err(|error| error.to_string())?;
        Ok(Self(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{File, Inputs, Loaded, load};

    #[test]
    fn nothing_of_the_address_is_printed_or_written() {
        // Invariant O3.
        let url: Hidden<RedisUrl> = serde_json::from_str(r#""rediss://ann:hunter2@cache:6380/2""#).unwrap();
        assert_eq!(format!("{url:?} {}", serde_json::to_string(&url).unwrap()), r#"*** "***""#);
        let wrong = serde_json::from_str::<Hidden<RedisUrl>>(r#""http://ann:hunter2@cache""#).unwrap_err();
        assert!(!wrong.to_string().contains("hunter2"), "{wrong}");
    }

    #[test]
    fn the_address_has_two_variables_and_ours_counts_more() {
        let read = |file: Option<File>, variables: &[(&str, &str)]| {
            let env = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
            let Loaded { settings, problems } = load(&Inputs { file, env: &env, flags: Vec::new() });
            assert!(problems.is_empty(), "{problems:?}");
            settings.redis.url.map(|url| url.value().address().expose().to_owned())
        };
        let (ours, theirs) = (("CARIBOU_REDIS_URL", "redis://ours"), ("REDIS_URL", "redis://theirs"));
        assert_eq!(read(None, &[theirs]).as_deref(), Some("redis://theirs"));
        assert_eq!(read(None, &[theirs, ours]).as_deref(), Some("redis://ours"));
        assert_eq!(read(None, &[]), None);
    }
}
