//! From a key to an admitted call: straight through the directory when the session is live, else by way of the
//! registry. Calls share a session only when user, thread and the credentials of their requests are equal (invariant
//! P1).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::config::ServerConfig;
use caribou_core::credentials::{CallerHeaders, CredentialKey};
use caribou_core::failure::Code;
use caribou_core::ids::{Epoch, Scope, ServerName, SessionKey};
use futures::future::join_all;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::book::EpochBook;
use super::handle::{Admitted, Handle, NotAdmitted, NotOpened};
use super::home::{Home, Homes, Pace, UNTRUSTED};
use super::registry::{Directory, RegistryMessage, Tally};
use crate::config::Binding;
use crate::error::VerbError;
use crate::options::Options;
use crate::roles::Role;

/// How often a caller goes back to the registry because a session ended under its hands.
const ATTEMPTS: usize = 5;

/// How often a session is looked for that moves from replica to replica while somebody waits for it.
const MOVES: usize = 64;

/// Why a call was not let into a session that is known.
enum NotEntered {
    NotOpen,
    Busy,
    Untrusted,
}

/// Finds sessions for callers.
#[derive(Clone)]
pub(crate) struct Router {
    pub(crate) directory: Directory,
    pub(crate) registry: Role<RegistryMessage>,
    pub(crate) book: Arc<Mutex<EpochBook>>,
    pub(crate) homes: Homes,
    /// Tells the credentials of requests apart.
    pub(crate) credentials: CredentialKey,
    pub(crate) options: Options,
}

impl Router {
    /// One admitted call with these headers in the session of `scope` with `server`, opened if there is none.
    pub(crate) async fn admit(
        &self,
        binding: &Binding,
        scope: &Scope,
        headers: &CallerHeaders,
    ) -> Result<Admitted, VerbError> {
        let credential = headers.digest(&self.credentials);
        let key = SessionKey { server: binding.server.name.clone(), scope: scope.clone(), credential };
        let live = self.find(&key).filter(|handle| handle.generation == binding.generation);
        match live.map(|handle| self.enter(&handle)) {
            Some(Ok(admitted)) => return Ok(admitted),
            Some(Err(NotEntered::Busy)) => return Err(self.refusal(&binding.server, NotOpened::Busy)),
            Some(Err(NotEntered::Untrusted)) => {
                return Err(self.refusal(&binding.server, NotOpened::Untrusted(UNTRUSTED.to_owned())));
            }
            Some(Err(NotEntered::NotOpen)) | None => {}
        }
        let of_session = Some(headers.of_session()).filter(|headers| !headers.is_empty()).map(Into::into);
        let binding = Binding { headers: of_session, ..binding.clone() };
        let until = Instant::now() + self.bring_up(&binding.server);
        let mut pace = Pace::until(until);
        let mut was_refused = false;
        for _ in 0..MOVES {
            let home = self.homes.locate(&key, &binding, until, was_refused).await?;
            let is_there = home.is_there();
            match self.acquire(&key, Binding { home, ..binding.clone() }).await {
                Err(NotOpened::Moved) => was_refused = is_there,
                opened => return opened.map_err(|why| self.refusal(&binding.server, why)),
            }
            if !pace.wait().await {
                break;
            }
        }
        Err(self.refusal(&binding.server, NotOpened::Moved))
    }

    /// The same for a caller of another replica: the session is opened here, or not at all.
    pub(crate) async fn admit_here(&self, key: &SessionKey, binding: Binding) -> Result<Admitted, NotOpened> {
        // Never by way of a third replica (invariant S1).
        match self.held(key).map(|handle| self.enter(&handle)) {
            Some(Ok(admitted)) => return Ok(admitted),
            Some(Err(NotEntered::Busy)) => return Err(NotOpened::Busy),
            Some(Err(NotEntered::NotOpen | NotEntered::Untrusted)) | None => {}
        }
        self.acquire(key, Binding { home: Home::Here, ..binding }).await
    }

    /// A call in a session that is open, as far as this replica may act for it (invariant L1).
    fn enter(&self, handle: &Arc<Handle>) -> Result<Admitted, NotEntered> {
        if handle.is_held() && self.homes.trust_left().is_zero() {
            return Err(NotEntered::Untrusted);
        }
        handle.admit().map_err(|why| match why {
            NotAdmitted::Busy => NotEntered::Busy,
            NotAdmitted::Opening | NotAdmitted::Retired => NotEntered::NotOpen,
        })
    }

    /// An admitted call by way of the registry.
    async fn acquire(&self, key: &SessionKey, binding: Binding) -> Result<Admitted, NotOpened> {
        // The registry and the connector keep the server's own bound; this one only outlasts their teardown.
        let bound = self.bring_up(&binding.server);
        for _ in 0..ATTEMPTS {
            let (waiter, answer) = oneshot::channel();
            let acquire = RegistryMessage::Acquire { key: key.clone(), binding: binding.clone(), waiter };
            if self.registry.cast(acquire).is_err() {
                return Err(NotOpened::Stopping);
            }
            match tokio::time::timeout(bound, answer).await {
                Ok(Ok(opened)) => return opened,
                // The session went away before it could answer.
                Ok(Err(_)) => {}
                Err(_) => return Err(NotOpened::TooLate(bound)),
            }
        }
        Err(NotOpened::KeepsEnding)
    }

    fn bring_up(&self, server: &ServerConfig) -> Duration {
        let bring_up = server.session_init_timeout.unwrap_or(self.options.call_max);
        bring_up.saturating_add(bounds::SESSION_CLOSE * 2)
    }

    /// The session of this key that is open in this replica, if one is, opened without credentials of a request.
    pub(crate) fn open(&self, server: &ServerName, scope: &Scope) -> Option<Arc<Handle>> {
        let key = SessionKey { server: server.clone(), scope: scope.clone(), credential: None };
        self.held(&key).filter(|handle| handle.session().is_some())
    }

    /// The session of this key that this replica holds, whatever its state; none that another one holds.
    pub(crate) fn held(&self, key: &SessionKey) -> Option<Arc<Handle>> {
        self.find(key).filter(|handle| !handle.home.is_there() && !handle.is_retired())
    }

    /// Whether anything of a session of this key is left in this replica, be it only its end.
    pub(crate) fn is_left(&self, key: &SessionKey) -> bool {
        self.find(key).is_some_and(|handle| !handle.home.is_there())
    }

    fn find(&self, key: &SessionKey) -> Option<Arc<Handle>> {
        self.directory.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Notes that a key was served; whether its thread should hear of a restart.
    pub(crate) async fn served(&self, key: &SessionKey, epoch: Epoch) -> bool {
        if let Some(is_restarted) = self.homes.told(key, epoch).await {
            return is_restarted;
        }
        self.book.lock().unwrap_or_else(PoisonError::into_inner).served(key, epoch)
    }

    /// Closes the sessions of `scope`, of one server if named, in the whole cluster. How many; waits until they are gone,
    /// but not for ever.
    pub(crate) async fn close(&self, scope: &Scope, server: Option<&ServerName>) -> Result<usize, VerbError> {
        let Some(peers) = self.homes.peers() else { return self.close_here(scope, server).await };
        let there = self.homes.others().into_iter().map(|peer| {
            let closed = peers.close_sessions(peer.clone(), scope.clone(), server.cloned());
            async move { (peer, tokio::time::timeout(bounds::SESSION_CLOSE, closed).await) }
        });
        let (here, there) = tokio::join!(self.close_here(scope, server), join_all(there));
        let (mut count, mut silent) = (here?, Vec::new());
        for (peer, closed) in there {
            match closed {
                Ok(Ok(closed)) => count += usize::try_from(closed).unwrap_or(usize::MAX),
                // One that is gone, or has none of them, closed what there was.
                Ok(Err(_)) | Err(_) if !self.homes.may_hold(&peer.boot, scope).await => {}
                Ok(Err(_)) | Err(_) => silent.push(peer.address),
            }
        }
        if silent.is_empty() {
            return Ok(count);
        }
        let detail = format!("{count} sessions are closed, but these replicas did not answer: {}", silent.join(", "));
        Err(VerbError::new(Code::Unavailable, detail))
    }

    /// Closes those that live here.
    pub(crate) async fn close_here(&self, scope: &Scope, server: Option<&ServerName>) -> Result<usize, VerbError> {
        let (done, closed) = oneshot::channel();
        let message = RegistryMessage::Close { scope: scope.clone(), server: server.cloned(), done };
        let _ = self.registry.cast(message);
        match tokio::time::timeout(bounds::SESSION_CLOSE, closed).await {
            Ok(Ok(count)) => Ok(count),
            Ok(Err(_)) => Ok(0),
            Err(_) => Err(VerbError::new(
                Code::Timeout,
                "the sessions are still closing; they accept no call any more and will be gone shortly",
            )),
        }
    }

    /// What there is.
    pub(crate) async fn tally(&self) -> Tally {
        let (reply, answer) = oneshot::channel();
        let _ = self.registry.cast(RegistryMessage::Tally(reply));
        match tokio::time::timeout(bounds::ROLE_ANSWER, answer).await {
            Ok(Ok(tally)) => tally,
            _ => Tally { handles: Vec::new(), stderr: Default::default() },
        }
    }
}
