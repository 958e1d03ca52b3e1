//! Whether the Redis that makes changes known sooner can be reached. It needs nothing but keys and channels: no
//! keyspace notifications, no persistence.

use caribou_signals::RedisSignal;

use super::finding::Finding;
use super::ground::Ground;

pub(super) async fn check(ground: &Ground) -> Vec<Finding> {
    if let Some(spoiled) = ground.spoiled(&["redis"]) {
        return vec![spoiled];
    }
    let redis = &ground.settings.redis;
    let Some(url) = &redis.url else {
        return vec![Finding::skipped("none is configured: replicas look into the database every second", None)];
    };
    let asked = match RedisSignal::new(url.value().address(), &redis.key_prefix) {
        Ok(signal) => signal.inspect().await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    vec![match asked {
        Err(why) => Finding::failed(
            why,
            "see that it runs, and that `redis.url` is right; without it replicas are slower and nothing is wrong",
        ),
        Ok(facts) => {
            let version = facts.version.map_or_else(|| "answers".to_owned(), |version| format!("version {version}"));
            match facts.evicts {
                None => Finding::ok(format!("{version}; no keyspace notifications are needed")),
                Some(policy) => Finding::warning(
                    format!("{version}; it throws keys away when its memory is full (`maxmemory-policy {policy}`)"),
                    "set `noeviction` or a `volatile-…` policy: nothing is lost, but changes are heard later",
                ),
            }
        }
    }]
}
