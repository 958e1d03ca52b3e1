//! Hints within this process: heard by everybody who listens, lost when nobody does.
//!
//! It never claims to be alive: what another process stores is not heard here, so the store is asked as often as
//! without it.

use caribou_core::reset::{ResetGeneration, ResetScope};
use caribou_ports::BoxFuture;
use caribou_ports::reset_signal::{HeardReset, HeardResets, ResetSignal, SignalError};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Hints that wait for a slow listener; beyond it the store tells.
const QUEUE: usize = 64;

/// Carries hints between the runtimes of one process. Clones are the same.
#[derive(Clone, Debug)]
pub struct InProcess(broadcast::Sender<(ResetScope, ResetGeneration)>);

impl Default for InProcess {
    fn default() -> Self {
        Self(broadcast::Sender::new(QUEUE))
    }
}

impl ResetSignal for InProcess {
    fn tell(&self, scope: ResetScope, generation: ResetGeneration) -> BoxFuture<'_, Result<(), SignalError>> {
        // Nobody listens: the timers find it.
        let _ = self.0.send((scope, generation));
        Box::pin(async { Ok(()) })
    }

    fn listen(&self, _: Vec<ResetScope>) -> BoxFuture<'_, Result<Box<dyn HeardResets>, SignalError>> {
        let listener: Box<dyn HeardResets> = Box::new(Listener(self.0.subscribe()));
        Box::pin(async { Ok(listener) })
    }
}

struct Listener(broadcast::Receiver<(ResetScope, ResetGeneration)>);

impl HeardResets for Listener {
    fn next(&mut self) -> BoxFuture<'_, Result<HeardReset, SignalError>> {
        Box::pin(async move {
            match self.0.recv().await {
                Ok(told) => Ok(HeardReset::Generations(vec![told])),
                Err(RecvError::Lagged(_)) => Ok(HeardReset::Anything),
                Err(RecvError::Closed) => Err(SignalError("nobody tells anything any more".to_owned())),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: ResetGeneration = ResetGeneration { origin: [1; 16], counter: 1 };

    #[tokio::test]
    async fn what_is_told_is_heard_and_too_much_at_once_means_anything() {
        // Invariant B1.
        let signal = InProcess::default();
        signal.tell(ResetScope::Global, FIRST).await.unwrap();
        let mut listener = signal.listen(Vec::new()).await.unwrap();
        signal.tell(ResetScope::Global, FIRST).await.unwrap();
        let heard = HeardReset::Generations(vec![(ResetScope::Global, FIRST)]);
        assert_eq!(listener.next().await, Ok(heard));
        for _ in 0..=QUEUE {
            signal.tell(ResetScope::Document, FIRST).await.unwrap();
        }
        assert_eq!(listener.next().await, Ok(HeardReset::Anything));
    }
}
