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
use tokio::sync::oneshot;

use super::book::EpochBook;
use super::handle::{Admitted, Handle, NotAdmitted, NotOpened};
use super::registry::{Directory, RegistryMessage, Tally};
use crate::config::Binding;
use crate::error::VerbError;
use crate::options::Options;
use crate::roles::Role;

/// How often a caller goes back to the registry because a session ended under its hands.
const ATTEMPTS: usize = 5;

/// Finds sessions for callers.
#[derive(Clone)]
pub(crate) struct Router {
    pub(crate) directory: Directory,
    pub(crate) registry: Role<RegistryMessage>,
    pub(crate) book: Arc<Mutex<EpochBook>>,
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
        let server = &binding.server;
        let credential = headers.digest(&self.credentials);
        let key = SessionKey { server: server.name.clone(), scope: scope.clone(), credential };
        let live = self.find(&key).filter(|handle| handle.generation == binding.generation);
        match live.map(|handle| handle.admit()) {
            Some(Ok(admitted)) => return Ok(admitted),
            Some(Err(NotAdmitted::Busy)) => return Err(self.refusal(server, NotOpened::Busy)),
            Some(Err(NotAdmitted::Opening | NotAdmitted::Retired)) | None => {}
        }
        let of_session = Some(headers.of_session()).filter(|headers| !headers.is_empty()).map(Into::into);
        let binding = Binding { headers: of_session, ..binding.clone() };
        // The registry and the connector keep the server's own bound; this one only outlasts their teardown.
        let bring_up = server.session_init_timeout.unwrap_or(self.options.call_max);
        let bound = bring_up.saturating_add(bounds::SESSION_CLOSE * 2);
        for _ in 0..ATTEMPTS {
            let (waiter, answer) = oneshot::channel();
            let acquire = RegistryMessage::Acquire { key: key.clone(), binding: binding.clone(), waiter };
            if self.registry.cast(acquire).is_err() {
                return Err(self.refusal(server, NotOpened::Stopping));
            }
            match tokio::time::timeout(bound, answer).await {
                Ok(Ok(opened)) => return opened.map_err(|why| self.refusal(server, why)),
                // The session went away before it could answer.
                Ok(Err(_)) => {}
                Err(_) => {
                    let detail = format!("server `{}` was not opened within {} s", server.name, bound.as_secs_f64());
                    return Err(VerbError::new(Code::Timeout, detail));
                }
            }
        }
        Err(VerbError::new(Code::SessionEnded, format!("sessions with server `{}` keep ending", server.name)))
    }

    /// The session of this key that is open, if one is, opened without credentials of a request.
    pub(crate) fn open(&self, server: &ServerName, scope: &Scope) -> Option<Arc<Handle>> {
        let key = SessionKey { server: server.clone(), scope: scope.clone(), credential: None };
        self.find(&key).filter(|handle| handle.session().is_some() && !handle.is_retired())
    }

    fn find(&self, key: &SessionKey) -> Option<Arc<Handle>> {
        self.directory.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Notes that a key was served; whether its thread should hear of a restart.
    pub(crate) fn served(&self, key: &SessionKey, epoch: Epoch) -> bool {
        self.book.lock().unwrap_or_else(PoisonError::into_inner).served(key, epoch)
    }

    /// Closes the sessions of `scope`, of one server if named. How many; waits until they are gone, but not for ever.
    pub(crate) async fn close(&self, scope: &Scope, server: Option<&ServerName>) -> Result<usize, VerbError> {
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

    fn refusal(&self, server: &ServerConfig, why: NotOpened) -> VerbError {
        let name = &server.name;
        match why {
            NotOpened::Failed(error) => {
                VerbError::new(error.code(), format!("server `{name}` could not be opened: {error}"))
            }
            NotOpened::BackingOff { last, retry_after } => VerbError {
                retry_after: Some(retry_after),
                ..VerbError::new(
                    last.code(),
                    format!(
                        "server `{name}` failed several times in a row and is tried again in {:.0} s; the last \
                         failure: {last}",
                        retry_after.as_secs_f64().ceil()
                    ),
                )
            },
            NotOpened::Busy => VerbError {
                retry_after: Some(Duration::from_secs(1)),
                ..VerbError::new(
                    Code::Busy,
                    format!(
                        "this session of server `{name}` has {} calls in flight already; try again, or raise \
                         `sessions.max_calls_per_session`",
                        self.options.max_calls_per_session
                    ),
                )
            },
            NotOpened::NoRoom { limit } => VerbError {
                retry_after: Some(Duration::from_secs(1)),
                ..VerbError::new(
                    Code::Busy,
                    format!(
                        "no session with server `{name}`: all {limit} are in use and none fell idle in time; try \
                         again later, or raise `sessions.max_live`"
                    ),
                )
            },
            NotOpened::Superseded => VerbError::new(
                Code::ConfigChanged,
                format!("configuration changed: server `{name}` is another one now; look its tools up again"),
            ),
            NotOpened::Stopping => VerbError::new(Code::Unavailable, "this replica is stopping"),
        }
    }
}
