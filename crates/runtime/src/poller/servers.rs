//! How much one server is asked: attempts at once, polls in a second, and not at all while it is away (durability.md
//! 1.10). A slow server may take its own share of the slots and no more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::identity::{Allowance, Rate};
use caribou_core::ids::ServerName;
use caribou_core::task::{Breaker, Duty};
use tokio::time::Instant;

/// Servers of which something is remembered although nothing is under way; beyond it they are forgotten.
const REMEMBERED: usize = 1_000;

/// All servers.
#[derive(Clone)]
pub(super) struct Servers(Arc<Inner>);

struct Inner {
    began: Instant,
    per_server: usize,
    rate: Option<Rate>,
    known: Mutex<HashMap<ServerName, Known>>,
}

#[derive(Default)]
struct Known {
    running: usize,
    allowance: Allowance,
    breaker: Breaker,
}

/// One attempt that was let through. Dropped when it has ended.
pub(super) struct Turn {
    servers: Servers,
    server: ServerName,
}

impl Servers {
    pub(super) fn new(per_server: usize, rate: Option<Rate>) -> Self {
        Self(Arc::new(Inner { began: Instant::now(), per_server, rate, known: Mutex::default() }))
    }

    /// A turn for one attempt.
    ///
    /// # Errors
    /// There is none now; perhaps in so long.
    pub(super) fn admit(&self, server: &ServerName, duty: Duty) -> Result<Turn, Duration> {
        let now = self.0.began.elapsed();
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        let one = known.entry(server.clone()).or_default();
        if one.running >= self.0.per_server {
            return Err(bounds::TASK_NO_ROOM);
        }
        // Cancels and answers are few, somebody waits for them, and they have a backoff of their own.
        if duty == Duty::Poll {
            if let Some(rate) = &self.0.rate {
                rate.take(&mut one.allowance, now)?;
            }
            one.breaker.admit(now)?;
        }
        one.running += 1;
        Ok(Turn { servers: self.clone(), server: server.clone() })
    }

    fn known(&self, server: &ServerName, change: impl FnOnce(&mut Known, Duration)) {
        let now = self.0.began.elapsed();
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(one) = known.get_mut(server) {
            change(one, now);
        }
    }
}

impl Turn {
    /// The server answered, be it with a failure of its own.
    pub(super) fn answered(&self) {
        self.servers.known(&self.server, |known, _| known.breaker.answered());
    }

    /// It did not.
    pub(super) fn failed(&self) {
        self.servers.known(&self.server, |known, now| known.breaker.failed(now));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut known = self.servers.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(one) = known.get_mut(&self.server) {
            one.running -= 1;
        }
        if known.len() > REMEMBERED {
            known.retain(|_, one| one.running > 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_has_its_share_of_the_slots_and_is_left_alone_while_it_is_away() {
        // Durability.md 1.10.
        let servers = Servers::new(2, None);
        let (slow, other) = (ServerName::from("slow"), ServerName::from("other"));
        let turns: Vec<Turn> = (0..2).map(|_| servers.admit(&slow, Duty::Poll).ok().unwrap()).collect();
        assert!(servers.admit(&slow, Duty::Cancel).is_err());
        assert!(servers.admit(&other, Duty::Poll).is_ok());
        for _ in 0..4 {
            turns[0].failed();
        }
        drop(turns);
        assert!(servers.admit(&slow, Duty::Poll).is_err(), "away");
        let cancel = servers.admit(&slow, Duty::Cancel).ok().unwrap();
        cancel.answered();
        assert!(servers.admit(&slow, Duty::Poll).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn polls_of_one_server_have_a_rate() {
        let servers = Servers::new(9, Rate::new(1.0, 1));
        let server = ServerName::from("s");
        assert!(servers.admit(&server, Duty::Poll).is_ok());
        assert_eq!(servers.admit(&server, Duty::Poll).err(), Some(Duration::from_secs(1)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(servers.admit(&server, Duty::Poll).is_ok());
    }
}
