//! Hears that a chain has changed, so that whoever waits for a peer looks at once and not with the next tick of its timer
//! (durability.md 3.3, R6).
//!
//! Nudges are hints: one that is lost costs a quarter of a second, one too many costs a look.

use std::sync::{Arc, OnceLock};

use caribou_ports::store::{Wake, Wakeups};
use tokio::sync::watch;

use crate::wakeups::{OnDrop, listen};

/// Tells and hears. Clones are the same.
#[derive(Clone)]
pub(in crate::oauth) struct Nudges(Arc<Inner>);

struct Inner {
    wakeups: Option<Arc<dyn Wakeups>>,
    heard: watch::Sender<()>,
    /// A listener holds a connection: a replica without chains has none.
    listening: OnceLock<OnDrop>,
}

impl Nudges {
    /// Over these hints; without any nobody is told.
    pub(in crate::oauth) fn over(wakeups: Option<Arc<dyn Wakeups>>) -> Self {
        Self(Arc::new(Inner { wakeups, heard: watch::Sender::new(()), listening: OnceLock::new() }))
    }

    /// Changes whenever a chain may have. The first who asks begins to listen.
    pub(super) fn heard(&self) -> watch::Receiver<()> {
        if let Some(wakeups) = &self.0.wakeups {
            self.0.listening.get_or_init(|| {
                let (wakeups, heard) = (wakeups.clone(), self.0.heard.clone());
                let tell = move |wake| {
                    if matches!(wake, Wake::Chain | Wake::Everything) {
                        heard.send_replace(());
                    }
                    true
                };
                OnDrop(tokio::spawn(listen(wakeups, tell)).abort_handle())
            });
        }
        self.0.heard.subscribe()
    }

    /// A chain has changed in the store. Nobody waits for the telling.
    pub(super) fn tell(&self) {
        if let Some(wakeups) = self.0.wakeups.clone() {
            tokio::spawn(async move { wakeups.wake(Wake::Chain).await });
        }
    }
}
