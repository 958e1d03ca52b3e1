//! Tells the receivers of events that a chain has ended until a person acts.
//!
//! Owns that each of them hears it once for each end: whoever stored the end tells, under a key that is the end's own,
//! and again under the same key while nobody knows that it was taken. A replica that ends meanwhile tells nobody else to
//! go on; the state of the chain says the same for as long as it lasts.

use std::sync::Arc;

use caribou_core::bounds::{ALARM_AGAIN, ALARM_ATTEMPTS};
use caribou_ports::event_sink::{ChainEnded, EventSink, Launched};

/// Whoever is told. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Alarm(Arc<[Arc<dyn EventSink>]>);

impl Alarm {
    pub(super) fn to(sinks: &[Arc<dyn EventSink>]) -> Self {
        Self(sinks.into())
    }

    /// Nobody waits for it.
    pub(super) fn raise(&self, ended: ChainEnded) {
        let ended = Arc::new(ended);
        for sink in self.0.iter().cloned() {
            tokio::spawn(tell(sink, ended.clone()));
        }
    }
}

async fn tell(sink: Arc<dyn EventSink>, ended: Arc<ChainEnded>) {
    let mut wait = ALARM_AGAIN;
    for _ in 0..ALARM_ATTEMPTS {
        let why = match sink.chain_ended(&ended).await {
            Launched::Delivered | Launched::Run { .. } | Launched::NobodyThere => return,
            Launched::Gone(why) => {
                tracing::warn!(server = %ended.server, "nobody is told that a chain has ended: {why}");
                return;
            }
            Launched::Busy => "it is busy".to_owned(),
            Launched::Refused(why) | Launched::Unclear(why) => why,
        };
        tracing::debug!(server = %ended.server, "that a chain has ended is told again: {why}");
        tokio::time::sleep(wait).await;
        wait *= 2;
    }
    tracing::warn!(server = %ended.server, "that a chain has ended was told {ALARM_ATTEMPTS} times in vain");
}
