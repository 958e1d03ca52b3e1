//! One subscription: messages, and signs of life. A connection that is silent may be dead without anybody knowing, so it
//! is asked for an answer at fixed intervals, on the very connection that messages come by.

use caribou_core::reset::{ResetGeneration, ResetScope, SIGNAL_PING};
use caribou_ports::BoxFuture;
use caribou_ports::reset_signal::{HeardReset, HeardResets, SignalError};
use futures::StreamExt as _;
use redis::aio::{PubSubSink, PubSubStream};
use redis::{Client, RedisResult, Value};
use tokio::time::{Instant, sleep_until, timeout};

use crate::redis_signal::{ANSWER, late};

pub(crate) struct Subscription {
    sink: PubSubSink,
    stream: PubSubStream,
    /// What is told first.
    known: Option<Vec<(ResetScope, ResetGeneration)>>,
    ping_at: Instant,
}

impl Subscription {
    /// Resolves when Redis has acknowledged it.
    pub(crate) async fn begin(client: &Client, channel: String) -> RedisResult<Self> {
        let (mut sink, stream) = client.get_async_pubsub().await?.split();
        sink.subscribe(channel).await?;
        Ok(Self { sink, stream, known: None, ping_at: Instant::now() + SIGNAL_PING })
    }

    /// Tells this first.
    pub(crate) fn knowing(self, known: Vec<(ResetScope, ResetGeneration)>) -> Self {
        Self { known: Some(known), ..self }
    }
}

impl HeardResets for Subscription {
    fn next(&mut self) -> BoxFuture<'_, Result<HeardReset, SignalError>> {
        Box::pin(async move {
            if let Some(known) = self.known.take() {
                return Ok(HeardReset::Generations(known));
            }
            tokio::select! {
                biased;
                message = self.stream.next() => match message {
                    Some(message) => Ok(heard(message.get_payload_bytes())),
                    None => Err(SignalError("the connection with Redis was lost".to_owned())),
                },
                () = sleep_until(self.ping_at) => {
                    let answered = timeout(ANSWER, self.sink.ping::<Value>()).await;
                    match answered {
                        Ok(Ok(_)) => {
                            self.ping_at = Instant::now() + SIGNAL_PING;
                            Ok(HeardReset::Alive)
                        }
                        _ => Err(late()),
                    }
                }
            }
        })
    }
}

/// A message: a generation, a blank, its scope.
fn heard(message: &[u8]) -> HeardReset {
    let read = || {
        let (generation, scope) = str::from_utf8(message).ok()?.split_once(' ')?;
        Some((ResetScope::parse(scope)?, ResetGeneration::parse(generation)?))
    };
    read().map_or(HeardReset::Anything, |told| HeardReset::Generations(vec![told]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_not_understood_means_anything() {
        let generation = ResetGeneration { origin: [7; 16], counter: 3 };
        let told = heard(format!("{generation} server:a b").as_bytes());
        assert_eq!(told, HeardReset::Generations(vec![(ResetScope::Server("a b".into()), generation)]));
        for foreign in [&b""[..], b"global", b"\xff x", format!("{generation} later:x").as_bytes()] {
            assert_eq!(heard(foreign), HeardReset::Anything);
        }
    }
}
