//! The tasks that hear of generations, and the one that has them applied.

use std::time::Duration;

use caribou_core::reset::LOOK;
use caribou_ports::reset_signal::{HeardReset, ResetSignal};
use ractor::ActorRef;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::Seen;
use crate::config::ConfigurationMessage;

/// How often the timer looks at the clock: often enough that a replica that was frozen notices.
const BEAT: Duration = Duration::from_millis(250);

/// The first wait after a subscription was lost.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The tasks, ended when this is dropped.
pub(crate) struct Feeders(#[expect(dead_code, reason = "held for its end")] JoinSet<()>);

impl Feeders {
    /// Starts them; whatever differs is applied by `configuration`.
    pub(crate) fn start(seen: &Seen, configuration: ActorRef<ConfigurationMessage>) -> Self {
        let mut tasks = JoinSet::new();
        tasks.spawn(apply(seen.clone(), configuration));
        tasks.spawn(keep_time(seen.clone()));
        tasks.spawn(super::teller::tell(seen.clone()));
        if let Some(signal) = seen.0.resets.signal.clone() {
            let seen = seen.clone();
            tasks.spawn(async move { listen(seen, &*signal).await });
        }
        Self(tasks)
    }
}

/// Has what differs applied, as one change after the other.
async fn apply(seen: Seen, configuration: ActorRef<ConfigurationMessage>) {
    loop {
        seen.0.differs.notified().await;
        while seen.is_behind() {
            let (done, applied) = oneshot::channel();
            if configuration.cast(ConfigurationMessage::Refresh { done }).is_err() {
                return;
            }
            let _ = applied.await;
        }
    }
}

/// Reads the store when it is time, or when somebody says so.
async fn keep_time(seen: Seen) {
    let mut beats = interval(BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looking = JoinSet::new();
    loop {
        let is_wanted = tokio::select! {
            _ = beats.tick() => false,
            () = seen.0.look_now.notified() => true,
        };
        seen.state().beat = Instant::now();
        while looking.try_join_next().is_some() {}
        // Beside this loop, which must beat on while the store hangs.
        if is_wanted || looking.is_empty() && Instant::now() >= seen.look_due() {
            let seen = seen.clone();
            if looking.len() < 2 {
                looking.spawn(async move {
                    let _ = seen.look().await;
                });
            }
        }
        // What could not be applied a while ago.
        if seen.is_behind() {
            seen.0.differs.notify_one();
        }
    }
}

/// Hears what is told, on one subscription after the other.
async fn listen(seen: Seen, signal: &dyn ResetSignal) {
    let mut wait = FIRST_WAIT;
    let mut is_known_lost = false;
    loop {
        match signal.listen(seen.scopes()).await {
            Ok(mut listener) => {
                if std::mem::take(&mut is_known_lost) {
                    tracing::info!("resets of other replicas are heard at once again");
                }
                wait = FIRST_WAIT;
                // What was told while nobody listened.
                seen.nudged();
                while let Ok(heard) = listener.next().await {
                    take(&seen, heard).await;
                }
            }
            Err(why) if !is_known_lost => {
                is_known_lost = true;
                tracing::warn!("resets of other replicas are heard from the store only, within a second or two: {why}");
            }
            Err(_) => {}
        }
        seen.signal_lost();
        seen.nudged();
        sleep(wait).await;
        wait = (wait * 2).min(LOOK);
    }
}

async fn take(seen: &Seen, heard: HeardReset) {
    match heard {
        HeardReset::Alive => seen.signal_alive(),
        HeardReset::Anything => seen.nudged(),
        HeardReset::Generations(told) => {
            let mut doubtful = told;
            doubtful.retain(|(scope, generation)| seen.hear(scope.clone(), *generation));
            if !doubtful.is_empty() && !seen.look().await {
                for (scope, generation) in doubtful {
                    seen.believe(scope, generation);
                }
            }
        }
    }
}
