//! Who is let in: tells the caller by its credential, and how often it may ask.
//!
//! The same gate stands before REST and gRPC. Says nothing about what a caller may do: the verbs do. It remembers the
//! allowances of a bounded number of callers (invariant B1); one that was forgotten has its whole burst again.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::config::Secret;
use caribou_core::identity::{Allowance, Principal, Rate};
use caribou_ports::identity::{Authenticator, Unauthenticated};
use lru::LruCache;
use tokio::time::Instant;

use crate::Runtime;

/// Why a request was not let in. Nothing was done for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// Nobody was recognised.
    #[error(transparent)]
    Unauthenticated(#[from] Unauthenticated),
    /// The caller asks too often.
    #[error("this caller asks too often; wait and try again")]
    Limited {
        /// After this long there is room for one more request.
        retry_after: Duration,
    },
}

/// The gate of a replica.
pub(crate) struct Gate {
    /// `None` = callers are not told apart.
    authenticator: Option<Arc<dyn Authenticator>>,
    limiter: Option<Limiter>,
}

impl Gate {
    pub(crate) fn new(authenticator: Option<Arc<dyn Authenticator>>, rate: Option<Rate>) -> Self {
        Self { authenticator, limiter: rate.map(Limiter::new) }
    }

    async fn admit(&self, bearer: Option<Secret>) -> Result<Principal, NotAdmitted> {
        let principal = match &self.authenticator {
            Some(authenticator) => authenticator.authenticate(bearer).await?,
            None => Principal::local(),
        };
        match self.limiter.as_ref().map_or(Ok(()), |limiter| limiter.take(&principal.id)) {
            Ok(()) => Ok(principal),
            Err(retry_after) => Err(NotAdmitted::Limited { retry_after }),
        }
    }
}

/// The allowances of callers by their ids.
struct Limiter {
    rate: Rate,
    /// What instants are counted from.
    origin: Instant,
    callers: Mutex<LruCache<Arc<str>, Allowance>>,
}

impl Limiter {
    fn new(rate: Rate) -> Self {
        let most = NonZeroUsize::new(bounds::MAX_REMEMBERED_CALLERS).unwrap_or(NonZeroUsize::MIN);
        Self { rate, origin: Instant::now(), callers: Mutex::new(LruCache::new(most)) }
    }

    fn take(&self, caller: &Arc<str>) -> Result<(), Duration> {
        let now = self.origin.elapsed();
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let allowance = callers.get_or_insert_mut_ref(caller, Allowance::default);
        self.rate.take(allowance, now)
    }
}

impl Runtime {
    /// The caller that presents this bearer credential, or none at all. To be asked once for each request, before
    /// anything is done for it.
    ///
    /// # Errors
    /// It is nobody we know, nobody can tell now, or it asks too often.
    pub async fn admit(&self, bearer: Option<Secret>) -> Result<Principal, NotAdmitted> {
        self.gate.admit(bearer).await
    }

    /// Whether callers are told apart; if not, everybody who reaches this replica may everything.
    pub fn tells_callers_apart(&self) -> bool {
        self.gate.authenticator.is_some()
    }
}
