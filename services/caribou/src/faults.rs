//! Faults of this program's own making, for its tests: it is killed or stands still at a point of a token refresh
//! (durability.md §8). Built with the feature `faults` only, which no release has.
//!
//! A point lies where the runtime meets its surroundings, so nothing of the product knows of it: the ports of the store
//! and of the token endpoint are replaced by ones that pass the points on their way. Without variables nothing happens.
//!
//! `CARIBOU_FAULT` lists faults, `ACTION-POINT@N` or `ACTION-POINT-SERVER@N`, separated by commas: at the N-th time that
//! this process comes to the point, for the chain of this server or any, it is killed (`kill`, a SIGKILL) or stands still
//! (`pause`, a SIGSTOP, until somebody lets it go on). The points in their order:
//!
//! | point | when |
//! | --- | --- |
//! | `begun` | the intent is committed, and nothing is sent |
//! | `sent` | the request is on its way, or at the provider |
//! | `answered` | a usable answer came |
//! | `committing` | the successor is about to be stored |
//! | `committed` | it is stored, and nobody here knows |
//!
//! `CARIBOU_FAULT=without-guard` takes one of the fences between two owners of a session down: children are told to be
//! trusted for ever.
//!
//! `CARIBOU_FAULT_HASTE=10` makes leases and waits of chains that many times shorter.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use caribou_core::ids::ServerName;
use caribou_ports::BoxFuture;
use caribou_ports::machine::Machine;
use caribou_ports::store::{
    BeginRefresh, ChainLease, FailedRefresh, GrantId, OAuthChains, Replica, SealedTokens, StartChain, StoreError,
    StoredChain, Successor, Verdict,
};
use caribou_ports::token_endpoint::{TokenAnswer, TokenEndpoint, TokenRequest, TokenRequestError};
use caribou_runtime::{ChainTimes, Outside};
use rustix::process::{Signal, getpid, kill_process};
use tokio::sync::Notify;

/// What takes the guard away.
const WITHOUT_GUARD: &str = "without-guard";

/// From the look at the lease, directly before the first byte, until the request has left for sure.
const ON_ITS_WAY: Duration = Duration::from_millis(20);

/// Puts the points of `CARIBOU_FAULT` between the runtime and its surroundings.
///
/// # Errors
/// A variable cannot be read.
pub(crate) fn between(mut outside: Outside) -> anyhow::Result<Outside> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let (Some(chains), Some(haste)) = (&mut outside.oauth_chains, variable("CARIBOU_FAULT_HASTE")) {
        let haste: u32 = haste.parse().context("CARIBOU_FAULT_HASTE is no number")?;
        chains.times = hastened(chains.times, haste.max(1));
    }
    let Some(listed) = variable("CARIBOU_FAULT") else { return Ok(outside) };
    if listed == WITHOUT_GUARD {
        tracing::warn!("this program was told to do without its guard");
        outside.machine = outside.machine.map(|inner| Arc::new(Unguarded(inner)) as Arc<dyn Machine>);
        return Ok(outside);
    }
    let faults = listed.split(',').map(str::parse).collect::<Result<Vec<Fault>, _>>()?;
    tracing::warn!("this program was told to fail: {listed}");
    let faults = Arc::new(Faults { faults, connections: Mutex::default() });
    if let Some(chains) = &mut outside.oauth_chains {
        chains.store = Arc::new(Store { inner: chains.store.clone(), faults: faults.clone() });
    }
    outside.token_endpoint =
        outside.token_endpoint.map(|inner| Arc::new(Endpoint { inner, faults }) as Arc<dyn TokenEndpoint>);
    Ok(outside)
}

/// A machine that ends no children.
struct Unguarded(Arc<dyn Machine>);

impl Machine for Unguarded {
    fn uptime(&self) -> Duration {
        self.0.uptime()
    }

    fn trust_until(&self, _: Duration) {
        self.0.trust_until(Duration::MAX);
    }

    fn is_gone(&self, replica: Replica) -> BoxFuture<'static, bool> {
        self.0.is_gone(replica)
    }

    fn forget(&self, replica: &Replica) {
        self.0.forget(replica);
    }
}

fn hastened(times: ChainTimes, haste: u32) -> ChainTimes {
    ChainTimes {
        lease: times.lease / haste,
        renew: times.renew / haste,
        margin: times.margin / haste,
        abandoned_after: times.abandoned_after / haste,
        last_word: times.last_word / haste,
    }
}

/// Something that happens once.
struct Fault {
    signal: Signal,
    point: String,
    server: Option<ServerName>,
    /// How often the point is still passed unharmed.
    left: AtomicU32,
}

impl FromStr for Fault {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let wrong = || format!("`{text}` in CARIBOU_FAULT is no ACTION-POINT@N");
        let (name, number) = text.trim().split_once('@').with_context(wrong)?;
        let (action, rest) = name.split_once('-').with_context(wrong)?;
        let (point, server) = rest.split_once('-').map_or((rest, None), |(point, server)| (point, Some(server)));
        let signal = match action {
            "kill" => Signal::KILL,
            "pause" => Signal::STOP,
            _ => anyhow::bail!(wrong()),
        };
        let number: u32 = number.parse().with_context(wrong)?;
        let left = AtomicU32::new(number.checked_sub(1).with_context(wrong)?);
        Ok(Self { signal, point: point.to_owned(), server: server.map(ServerName::from), left })
    }
}

struct Faults {
    faults: Vec<Fault>,
    /// Whose chain a row is. Bounded by the rows of the store.
    connections: Mutex<HashMap<GrantId, ServerName>>,
}

impl Faults {
    fn pass(&self, point: &str, server: &ServerName) {
        let here = |fault: &&Fault| fault.point == point && fault.server.as_ref().is_none_or(|own| own == server);
        for fault in self.faults.iter().filter(here) {
            // Counts down to zero, acts there, and goes on where no other passing comes to zero again.
            let left = fault.left.fetch_sub(1, Ordering::SeqCst);
            if left == 0 {
                tracing::warn!(%server, point, "a fault on demand: {:?}", fault.signal);
                let _ = kill_process(getpid(), fault.signal);
            }
        }
    }

    fn pass_of(&self, point: &str, grant: &GrantId) {
        let server = self.connections.lock().unwrap_or_else(PoisonError::into_inner).get(grant).cloned();
        if let Some(server) = server {
            self.pass(point, &server);
        }
    }
}

struct Endpoint {
    inner: Arc<dyn TokenEndpoint>,
    faults: Arc<Faults>,
}

impl TokenEndpoint for Endpoint {
    fn request(&self, mut request: TokenRequest) -> BoxFuture<'static, Result<TokenAnswer, TokenRequestError>> {
        let (faults, server) = (self.faults.clone(), request.server.clone());
        let leaving = Arc::new((Notify::new(), AtomicBool::new(false)));
        let (held, told) = (request.still_held.take(), leaving.clone());
        request.still_held = Some(Arc::new(move || {
            let is_held = held.as_ref().is_none_or(|held| held());
            told.1.store(is_held, Ordering::SeqCst);
            told.0.notify_one();
            is_held
        }));
        let mut asked = self.inner.request(request);
        Box::pin(async move {
            let left = async {
                leaving.0.notified().await;
                tokio::time::sleep(ON_ITS_WAY).await;
            };
            let early = tokio::select! { biased; answer = &mut asked => Some(answer), () = left => None };
            if leaving.1.load(Ordering::SeqCst) {
                faults.pass("sent", &server);
            }
            let answer = match early {
                Some(answer) => answer,
                None => asked.await,
            };
            if answer.is_ok() {
                faults.pass("answered", &server);
            }
            answer
        })
    }
}

struct Store {
    inner: Arc<dyn OAuthChains>,
    faults: Arc<Faults>,
}

impl OAuthChains for Store {
    fn load_chain(&self, connection: ServerName) -> BoxFuture<'_, Result<Option<StoredChain>, StoreError>> {
        Box::pin(async move {
            let row = self.inner.load_chain(connection).await?;
            if let Some(row) = &row {
                let mut connections = self.faults.connections.lock().unwrap_or_else(PoisonError::into_inner);
                connections.insert(row.grant.clone(), row.connection.clone());
            }
            Ok(row)
        })
    }

    fn list_chains(&self) -> BoxFuture<'_, Result<Vec<StoredChain>, StoreError>> {
        self.inner.list_chains()
    }

    fn start_chain(&self, start: StartChain) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.inner.start_chain(start)
    }

    fn begin_refresh(&self, begin: BeginRefresh) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let grant = begin.seen.grant.clone();
            let begun = self.inner.begin_refresh(begin).await;
            if begun == Ok(true) {
                self.faults.pass_of("begun", &grant);
            }
            begun
        })
    }

    fn renew_refresh(&self, lease: ChainLease, length: Duration) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.inner.renew_refresh(lease, length)
    }

    fn finish_refresh(&self, successor: Successor) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let grant = successor.grant.clone();
            self.faults.pass_of("committing", &grant);
            let finished = self.inner.finish_refresh(successor).await;
            if finished == Ok(true) {
                self.faults.pass_of("committed", &grant);
            }
            finished
        })
    }

    fn settle_refresh(&self, failure: FailedRefresh) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.inner.settle_refresh(failure)
    }

    fn give_up_refresh(&self, verdict: Verdict) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.inner.give_up_refresh(verdict)
    }

    fn forget_chain(&self, grant: GrantId) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.inner.forget_chain(grant)
    }

    fn reseal_chain(&self, before: StoredChain, after: SealedTokens) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.inner.reseal_chain(before, after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_what_happens_where_to_whom_and_when() {
        let fault: Fault = "kill-sent-k_1@3".parse().unwrap();
        assert_eq!((fault.signal, &*fault.point, fault.left.into_inner()), (Signal::KILL, "sent", 2));
        assert_eq!(fault.server, Some(ServerName::from("k_1")));
        let fault: Fault = "pause-begun@1".parse().unwrap();
        assert_eq!((fault.signal, fault.server), (Signal::STOP, None));
        for wrong in ["kill-sent", "kill@1", "burn-sent@1", "kill-sent@0", "kill-sent@x", ""] {
            assert!(wrong.parse::<Fault>().is_err(), "{wrong}");
        }
    }
}
