//! [`ThisMachine`]: the [`Machine`] of a replica that shares a database with others.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use caribou_ports::BoxFuture;
use caribou_ports::machine::Machine;
use caribou_ports::store::Replica;
use tokio::time::{Instant, sleep};

use super::life_lock::{prove, remove};
use crate::guard::{Guard, clock, sweep};

/// How long what a killed guard left may take to die. Longer only in uninterruptible I/O: the next look asks again.
const DEATHS: Duration = Duration::from_secs(1);

/// How soon to look at it again.
const AGAIN: Duration = Duration::from_millis(10);

/// The machine that this process runs on.
pub(crate) struct ThisMachine(Arc<Guard>);

impl ThisMachine {
    /// With the guard of this replica.
    pub(crate) fn guarded_by(guard: Arc<Guard>) -> Self {
        Self(guard)
    }
}

impl Machine for ThisMachine {
    fn uptime(&self) -> Duration {
        clock::uptime()
    }

    fn trust_until(&self, uptime: Duration) {
        self.0.trust_until(uptime);
    }

    fn is_gone(&self, replica: Replica) -> BoxFuture<'static, bool> {
        Box::pin(async move {
            let Some(path) = replica.lock_path else { return false };
            let boot = replica.boot.clone();
            let tried = tokio::task::spawn_blocking(move || prove(Path::new(&path), &boot)).await;
            let Ok(Ok(Some(_proof))) = tried else { return false };
            // Main and guard may have been killed at one instant: then what had left its group may live.
            let until = Instant::now() + DEATHS;
            loop {
                let boot = replica.boot.clone();
                let swept = tokio::task::spawn_blocking(move || sweep::kill_left_of(boot.as_str())).await;
                if swept.unwrap_or(false) {
                    return true;
                }
                if Instant::now() >= until {
                    return false;
                }
                sleep(AGAIN).await;
            }
        })
    }

    fn forget(&self, replica: &Replica) {
        if let Some(path) = &replica.lock_path {
            remove(Path::new(path), &replica.boot);
        }
    }
}
