//! What a Redis is, for people who look for what is wrong. Changes nothing in it.

use caribou_core::reset::ResetScope;
use caribou_ports::reset_signal::SignalError;
use redis::InfoDict;

use crate::redis_signal::RedisSignal;

/// A Redis as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisFacts {
    /// Its version; `None` = we may not ask for it.
    pub version: Option<String>,
    /// The policy by which it throws our keys away when its memory is full; `None` = it keeps them, or we may not ask.
    pub evicts: Option<String>,
}

impl RedisSignal {
    /// Asks for what every reset needs, then for what it tells of itself.
    ///
    /// # Errors
    /// It cannot be reached, or does not let us read our keys.
    pub async fn inspect(&self) -> Result<RedisFacts, SignalError> {
        let key = self.key_of(&ResetScope::Global);
        self.ask(async |connection| redis::cmd("GET").arg(key).query_async::<Option<String>>(connection).await).await?;
        // Many hosted ones keep this to themselves.
        let told = self.ask(async |connection| redis::cmd("INFO").query_async::<InfoDict>(connection).await).await;
        let Ok(told) = told else { return Ok(RedisFacts { version: None, evicts: None }) };
        let policy = told.get::<String>("maxmemory_policy").filter(|policy| policy.starts_with("allkeys"));
        let is_bounded = told.get::<u64>("maxmemory").is_some_and(|most| most > 0);
        Ok(RedisFacts { version: told.get("redis_version"), evicts: policy.filter(|_| is_bounded) })
    }
}
