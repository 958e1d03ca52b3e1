//! Hints over Redis: a key for each scope, which never goes back within one count, and one channel.
//!
//! The key is for whoever subscribes later; the channel tells those who listen. Both change in one script, so that
//! whoever subscribes in between misses nothing.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::Secret;
use caribou_core::reset::{ResetGeneration, ResetScope};
use caribou_ports::BoxFuture;
use caribou_ports::reset_signal::{HeardResets, ResetSignal, SignalError};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError, Script};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::subscription::Subscription;

/// Redis answers within a millisecond; one that does not within this is frozen or away.
pub(crate) const ANSWER: Duration = Duration::from_secs(2);

/// Sets the key unless it stands further on in the same count, and tells whoever listens, unless that was done before.
/// What is behind the key is told too: after the store was restored from a copy, the key is what is wrong, and whoever
/// listens asks the store.
const TELL: &str = "
local generation = ARGV[1] .. ':' .. ARGV[2]
local known = redis.call('GET', KEYS[1])
if known == generation then return 0 end
local is_newer = true
if known then
  local origin, counter = string.match(known, '^(%x+):(%d+)$')
  is_newer = origin ~= ARGV[1] or tonumber(counter) < tonumber(ARGV[2])
end
if is_newer then redis.call('SET', KEYS[1], generation) end
redis.call('PUBLISH', ARGV[3], generation .. ' ' .. ARGV[4])
return 1
";

/// The text is no address of a Redis. Holds nothing of it (invariant O3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an address such as redis://host:6379/0 or rediss://user@host")]
pub struct NotAnAddress;

/// Carries hints over a Redis. Clones share its connection.
#[derive(Clone)]
pub struct RedisSignal(Arc<Shared>);

struct Shared {
    client: Client,
    keys: Keys,
    tell: Script,
    /// Given up with the first request that fails on it, and made anew for the next one.
    connection: Mutex<Option<MultiplexedConnection>>,
}

/// How keys and the channel are named.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: Arc<str>,
}

impl Keys {
    pub(crate) fn of(&self, scope: &ResetScope) -> String {
        format!("{}:gen:{scope}", self.prefix)
    }

    pub(crate) fn channel(&self) -> String {
        format!("{}:gen", self.prefix)
    }
}

impl RedisSignal {
    /// Names a Redis, without asking it yet. All replicas of one deployment use one prefix, and no other does.
    ///
    /// # Errors
    /// The address is none.
    pub fn new(url: &Secret, prefix: &str) -> Result<Self, NotAnAddress> {
        let client = Client::open(url.expose()).map_err(|_| NotAnAddress)?;
        let keys = Keys { prefix: prefix.into() };
        Ok(Self(Arc::new(Shared { client, keys, tell: Script::new(TELL), connection: Mutex::default() })))
    }

    /// The key of one scope.
    pub(crate) fn key_of(&self, scope: &ResetScope) -> String {
        self.0.keys.of(scope)
    }

    /// Runs `request` on the one connection.
    pub(crate) async fn ask<T>(
        &self,
        request: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Result<T, SignalError> {
        let asked = async {
            let mut connection = self.connection().await?;
            match timeout(ANSWER, request(&mut connection)).await {
                Ok(Ok(answer)) => Ok(answer),
                failed => {
                    *self.0.connection.lock().await = None;
                    Err(failed.map_or_else(|_| late(), |error| error.map_or_else(|error| broken(&error), |_| late())))
                }
            }
        };
        asked.await
    }

    async fn connection(&self) -> Result<MultiplexedConnection, SignalError> {
        let mut held = self.0.connection.lock().await;
        if let Some(connection) = &*held {
            return Ok(connection.clone());
        }
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(Some(ANSWER)).set_response_timeout(Some(ANSWER));
        let connecting = self.0.client.get_multiplexed_async_connection_with_config(&config);
        let connection = timeout(ANSWER, connecting).await.map_err(|_| late())?.map_err(|error| broken(&error))?;
        Ok(held.insert(connection).clone())
    }

    async fn read(&self, scopes: Vec<ResetScope>) -> Result<Vec<(ResetScope, ResetGeneration)>, SignalError> {
        if scopes.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<String> = scopes.iter().map(|scope| self.0.keys.of(scope)).collect();
        let read: Vec<Option<String>> =
            self.ask(async |connection| redis::cmd("MGET").arg(keys).query_async(connection).await).await?;
        let known = scopes.into_iter().zip(read);
        Ok(known.filter_map(|(scope, text)| Some((scope, ResetGeneration::parse(&text?)?))).collect())
    }
}

impl ResetSignal for RedisSignal {
    fn tell(&self, scope: ResetScope, generation: ResetGeneration) -> BoxFuture<'_, Result<(), SignalError>> {
        Box::pin(async move {
            let Shared { keys, tell, .. } = &*self.0;
            let text = generation.to_string();
            let (origin, counter) = text.split_once(':').unwrap_or_default();
            let mut invocation = tell.key(keys.of(&scope));
            invocation.arg(origin).arg(counter).arg(keys.channel()).arg(scope.to_string());
            self.ask(async |connection| invocation.invoke_async::<i64>(connection).await).await.map(drop)
        })
    }

    fn listen(&self, scopes: Vec<ResetScope>) -> BoxFuture<'_, Result<Box<dyn HeardResets>, SignalError>> {
        Box::pin(async move {
            // In this order: what is told between the two is heard twice rather than never.
            let subscribing = Subscription::begin(&self.0.client, self.0.keys.channel());
            let subscription =
                timeout(ANSWER, subscribing).await.map_err(|_| late())?.map_err(|error| broken(&error))?;
            let known = self.read(scopes).await?;
            let listener: Box<dyn HeardResets> = Box::new(subscription.knowing(known));
            Ok(listener)
        })
    }
}

/// What a driver's error says, without what it may quote.
pub(crate) fn broken(error: &RedisError) -> SignalError {
    SignalError(format!("Redis cannot be used now: {}", error.category()))
}

pub(crate) fn late() -> SignalError {
    SignalError(format!("Redis does not answer within {} s", ANSWER.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_one_deployment() {
        let keys = Keys { prefix: "caribou:blue".into() };
        assert_eq!(keys.of(&ResetScope::Global), "caribou:blue:gen:global");
        assert_eq!(keys.of(&ResetScope::Server("files".into())), "caribou:blue:gen:server:files");
        assert_eq!(keys.channel(), "caribou:blue:gen");
    }

    #[tokio::test]
    async fn nothing_of_an_address_is_told() {
        // Invariant O3.
        assert!(RedisSignal::new(&Secret::new("http://ann:hunter2@h"), "caribou").is_err());
        let signal = RedisSignal::new(&Secret::new("redis://ann:hunter2@127.0.0.1:1"), "caribou").unwrap();
        let failed = signal.listen(Vec::new()).await.err().unwrap().to_string();
        assert!(!failed.contains("hunter2") && !failed.contains("127"), "{failed}");
    }
}
