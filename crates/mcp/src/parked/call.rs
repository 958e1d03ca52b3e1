//! One call that its server asks something in the middle of, from then on: it goes on by itself, whoever waits.
//!
//! Owns the request on its way. Dropping the last hold on it cancels it upstream, unless its answer has arrived.

use std::sync::{Arc, Mutex, PoisonError};

use caribou_ports::BoxFuture;
use caribou_ports::mcp::{CallError, Progress, ProgressSink};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::asking::{Asker, Asking};
use crate::wire::ids::Outcome;
use crate::wire::limits::MORE_QUESTIONS;

/// A request on its way.
pub(crate) type Flight = BoxFuture<'static, Outcome>;

/// What happens to a call next.
pub(crate) enum Next {
    /// It has its answer.
    Done(Outcome),
    /// Its server asks something that its caller can be asked.
    Asked,
    /// Its server asks something that its caller cannot be asked: JSON text of the capabilities that are missing.
    Lacking(&'static str),
}

/// What happens first to `flight`, which has `asking` of its own.
pub(crate) async fn first_of(flight: impl Future<Output = Outcome>, asking: &Asking) -> Next {
    let mut flight = std::pin::pin!(flight);
    // A server that was declined may answer before anybody looks: what its caller lacks is told all the same.
    let done = |outcome| asking.lacking().map_or(Next::Done(outcome), |need| Next::Lacking(need.required()));
    loop {
        tokio::select! {
            biased;
            outcome = &mut flight => return done(outcome),
            () = asking.something() => {}
        }
        if asking.lacking().is_none() {
            tokio::select! {
                biased;
                outcome = &mut flight => return done(outcome),
                () = sleep(MORE_QUESTIONS) => {}
            }
        }
        match asking.lacking() {
            Some(need) => return Next::Lacking(need.required()),
            // The server may have taken it back meanwhile.
            None if asking.is_something() => return Next::Asked,
            None => {}
        }
    }
}

/// Who hears the progress of a call: whoever waits for it at the moment.
#[derive(Clone)]
pub(crate) enum Hearing {
    /// Nobody, or always the one who made it.
    Fixed(Option<ProgressSink>),
    /// Whoever waits for it.
    Changing(Arc<Mutex<Option<ProgressSink>>>),
}

impl Hearing {
    /// Of a call that `listener` hears at first.
    pub(crate) fn of(asker: &Asker, listener: Option<ProgressSink>) -> Self {
        match (asker, listener) {
            (Asker::Open(_), Some(listener)) => Self::Changing(Arc::new(Mutex::new(Some(listener)))),
            // Its server was not told that anybody listens, so it will not report.
            (_, listener) => Self::Fixed(listener),
        }
    }

    /// This one hears it from now on.
    pub(super) fn set(&self, listener: Option<ProgressSink>) {
        if let Self::Changing(now) = self {
            *now.lock().unwrap_or_else(PoisonError::into_inner) = listener;
        }
    }

    /// Where the call reports to.
    pub(crate) fn sink(&self) -> Option<ProgressSink> {
        let now = match self {
            Self::Fixed(listener) => return listener.clone(),
            Self::Changing(now) => now.clone(),
        };
        Some(Arc::new(move |progress: Progress| {
            let listener = now.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(listener) = listener {
                listener(progress);
            }
        }))
    }
}

/// A call that has been asked something.
pub(crate) struct ParkedCall {
    pub(super) asking: Arc<Asking>,
    pub(super) hearing: Hearing,
    outcome: watch::Receiver<Option<Outcome>>,
    driver: JoinHandle<()>,
}

impl ParkedCall {
    /// Lets `flight` go on, but not longer than its session.
    pub(crate) fn go_on(flight: Flight, asking: Arc<Asking>, hearing: Hearing, over: CancellationToken) -> Arc<Self> {
        let (answered, outcome) = watch::channel(None);
        let driver = tokio::spawn(async move {
            if let Some(outcome) = over.run_until_cancelled(flight).await {
                answered.send_replace(Some(outcome));
            }
        });
        Arc::new(Self { asking, hearing, outcome, driver })
    }

    /// What happens to it next.
    pub(crate) async fn next(&self) -> Next {
        let mut outcome = self.outcome.clone();
        let answered = async {
            let answered = outcome.wait_for(Option::is_some).await;
            let answered = answered.ok().and_then(|outcome| outcome.clone());
            answered.unwrap_or_else(|| Err(CallError::StreamEnded("the session was closed".to_owned())))
        };
        first_of(answered, &self.asking).await
    }

    /// Declines what is asked: there is no room for it to wait.
    pub(crate) async fn decline(&self) {
        self.asking.give_up(r#"{"action":"decline"}"#).await;
    }
}

impl Drop for ParkedCall {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::super::abilities::SAMPLE;
    use super::super::asking::tests::{Told, ask, asking, raw};
    use super::*;

    #[tokio::test]
    async fn what_a_caller_lacks_is_told_though_the_server_was_faster() {
        // mcp.md 14.3, caller lacks the capability.
        let (asking, answered) = (asking(true), std::future::ready(Ok(raw("{}"))));
        let _ = ask(&asking, "1", SAMPLE, "{}", &Told::default());
        assert!(matches!(first_of(answered, &asking).await, Next::Lacking(_)));
    }
}
