//! One interceptor outside of this process: the deadline and the breaker around whatever wire it is asked over.
//!
//! Owns what a failure is called towards people: it names the entry and what went wrong, never an address's login or
//! query nor anything that was sent or received (invariant O3). Shared by all servers whose entry is the same.

use std::time::Duration;

use caribou_core::bounds::INTERCEPTOR_FAILURES;
use caribou_ports::BoxFuture;
use caribou_ports::interceptor::{Before, InterceptedCall, Interceptor, InterceptorError};
use serde_json::value::RawValue;

use crate::breaker::Breaker;

/// How an interceptor is asked.
pub(crate) trait Wire: Send + Sync + 'static {
    fn before<'a>(&'a self, call: &'a InterceptedCall) -> BoxFuture<'a, Result<Before, Trouble>>;

    /// `None` = the result stays as it is.
    fn after<'a>(
        &'a self,
        call: &'a InterceptedCall,
        result: &'a RawValue,
    ) -> BoxFuture<'a, Result<Option<Box<RawValue>>, Trouble>>;
}

/// Why an interceptor was not heard. Holds nothing that it or we sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("cannot be reached: no connection")]
    Unconnected,
    #[error("cannot be reached: the connection broke")]
    Broken,
    #[error("cannot be reached: it did not answer within {} s", .0.as_secs_f64())]
    Late(Duration),
    #[error("cannot be reached: it failed {INTERCEPTOR_FAILURES} times in a row and is asked again in {:.0} s", .0.as_secs_f64().ceil())]
    LeftAlone(Duration),
    #[error("answered with {0}")]
    Status(String),
    #[error("answered with more than {0} bytes")]
    TooLarge(usize),
    #[error("answered with something else than it may: {0}")]
    Malformed(&'static str),
}

/// An interceptor over `W`.
pub(crate) struct Callout<W> {
    name: String,
    answer_within: Duration,
    breaker: Breaker,
    wire: W,
}

impl<W: Wire> Callout<W> {
    pub(crate) fn new(name: String, answer_within: Duration, wire: W) -> Self {
        Self { name, answer_within, breaker: Breaker::closed(), wire }
    }

    async fn ask<T>(&self, asking: impl Future<Output = Result<T, Trouble>>) -> Result<T, InterceptorError> {
        let asked = async {
            let turn = self.breaker.turn().map_err(Trouble::LeftAlone)?;
            let answer = tokio::time::timeout(self.answer_within, asking).await;
            let answer = answer.unwrap_or(Err(Trouble::Late(self.answer_within)));
            match &answer {
                Ok(_) => turn.succeeded(),
                Err(_) => turn.failed(),
            }
            answer
        };
        asked.await.map_err(|trouble| InterceptorError(format!("interceptor `{}` {trouble}", self.name)))
    }
}

impl<W: Wire> Interceptor for Callout<W> {
    fn before<'a>(&'a self, call: &'a InterceptedCall) -> BoxFuture<'a, Result<Before, InterceptorError>> {
        Box::pin(self.ask(self.wire.before(call)))
    }

    fn after<'a>(
        &'a self,
        call: &'a InterceptedCall,
        result: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, InterceptorError>> {
        Box::pin(async move {
            let replaced = self.ask(self.wire.after(call, &result)).await?;
            Ok(replaced.unwrap_or(result))
        })
    }
}
