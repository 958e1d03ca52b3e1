//! What other replicas ask of this one: a session that it holds, a call in it, the end of sessions, a look at the store.
//!
//! Owns that nothing is forwarded from here (invariant S1), and that a call is taken only by the life that is meant, at
//! the epoch that is meant, within its trust (L1). Who the caller is, what it may do and what is put on record was
//! settled by the replica that it asked.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::personal;
use caribou_core::failure::Code;
use caribou_core::ids::{BootId, Epoch, Scope, ServerName, SessionKey};
use caribou_core::session::{NotTaken, Received, receive};
use caribou_ports::mcp::SessionFacts;
use caribou_ports::peers::{Exchange, Nudge, PeerError, PeerRequest, Wanted};

use crate::Runtime;
use crate::config::Binding;
use crate::error::VerbError;
use crate::exchange::{Call, RunningExchange};
use crate::session::{Admitted, Handle, NotAdmitted, NotOpened};

/// A session of this replica, as another one is told of it.
pub struct OpenedForPeer {
    /// At which epoch it is held.
    pub epoch: Epoch,
    /// What was learnt when it was brought up.
    pub facts: SessionFacts,
}

/// Why a call in a session is not made. It has not reached the server, unless it is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExchangeRefused {
    /// Look the session up again.
    NotTaken(NotTaken),
    /// As many calls are in flight as may be.
    Busy(String),
    /// It was asked for again, and is not known here.
    UnknownCall,
}

impl Runtime {
    /// Finds the session that another replica wants, or opens it here.
    ///
    /// # Errors
    /// This replica does not take it; or it took it, and the session could not be opened.
    pub async fn open_for_peer(&self, to: &BootId, hops: u32, wanted: Wanted) -> Result<OpenedForPeer, PeerError> {
        let held = self.router.held(&wanted.key);
        // One that is being opened is waited for: its epoch is told then.
        let is_opening = held.as_ref().is_some_and(|handle| handle.session().is_none());
        let epoch = wanted.epoch.filter(|_| !is_opening);
        let held_at = held.filter(|_| !is_opening).map(|handle| handle.epoch());
        let taken = self.taken(to, Received { hops, epoch, held: held_at, ..self.received(wanted.within) });
        match taken {
            Ok(_) => {}
            Err(NotTaken::WrongEpoch) if held_at.is_some() => {}
            Err(why) => {
                if let (NotTaken::NotOwner, Some(epoch), false) = (why, wanted.epoch, self.router.is_left(&wanted.key))
                {
                    // The row may name us because the end of what it names never reached the store. While a child of it
                    // may be alive, the row stays (invariant S3).
                    self.router.homes.free(&wanted.key, epoch);
                }
                return Err(why.into());
            }
        }
        let binding = self.binding_of(&wanted).await.map_err(failed)?;
        let opened = tokio::time::timeout(wanted.within, self.router.admit_here(&wanted.key, binding.clone())).await;
        match opened {
            Ok(Ok(admitted)) => {
                Ok(OpenedForPeer { epoch: admitted.handle.epoch(), facts: admitted.session.facts().clone() })
            }
            Ok(Err(NotOpened::Moved)) => Err(NotTaken::NotOwner.into()),
            Ok(Err(NotOpened::Untrusted(_))) => Err(NotTaken::Fenced.into()),
            Ok(Err(NotOpened::Stopping)) => Err(NotTaken::Draining.into()),
            Ok(Err(why)) => Err(failed(self.router.refusal(&binding.server, why))),
            Err(_) => Err(failed(self.router.refusal(&binding.server, NotOpened::TooLate(wanted.within)))),
        }
    }

    /// Begins a call of another replica in a session of this one, or joins one that began before. It is made by waiting
    /// for what happens, and by itself once that is dropped.
    ///
    /// # Errors
    /// It is not made.
    pub fn exchange_for_peer(&self, to: &BootId, exchange: Exchange) -> Result<RunningExchange, ExchangeRefused> {
        let is_again = exchange.is_again;
        let taken = self.exchange_taken(to, exchange);
        self.metrics.peer_called(match &taken {
            Ok(_) if is_again => "joined",
            Ok(_) => "taken",
            Err(ExchangeRefused::NotTaken(why)) => why.kind(),
            Err(ExchangeRefused::Busy(_)) => "busy",
            Err(ExchangeRefused::UnknownCall) => "unknown_call",
        });
        taken
    }

    fn exchange_taken(&self, to: &BootId, exchange: Exchange) -> Result<RunningExchange, ExchangeRefused> {
        let not_taken = ExchangeRefused::NotTaken;
        if *to != self.boot {
            return Err(not_taken(NotTaken::WrongBoot));
        }
        if let Some(known) = self.exchanges.find(&exchange.call_id) {
            return Ok(known.join());
        }
        if exchange.is_again {
            return Err(ExchangeRefused::UnknownCall);
        }
        let held = self.router.held(&exchange.key).filter(|handle| handle.session().is_some());
        let received = Received {
            hops: exchange.hops,
            epoch: Some(exchange.epoch),
            held: held.as_ref().map(|handle| handle.epoch()),
            ..self.received(exchange.within)
        };
        self.taken(to, received).map_err(not_taken)?;
        let Some(handle) = held else { return Err(not_taken(NotTaken::NotOwner)) };
        let admitted = self.let_in(&handle)?;
        let call = Call::new(is_listened_to(&exchange.request));
        if let Err(known) = self.exchanges.begin(&exchange.call_id, call.clone()) {
            return Ok(known.join());
        }
        let request = heard(exchange.request, &call);
        Ok(call.run(self.exchanges.clone(), exchange.call_id, admitted, request, exchange.within))
    }

    /// Closes the sessions of a user and thread that live here. How many.
    ///
    /// # Errors
    /// Another life is meant, or they take too long to go.
    pub async fn close_for_peer(
        &self,
        to: &BootId,
        scope: Scope,
        server: Option<ServerName>,
    ) -> Result<u64, PeerError> {
        if *to != self.boot {
            return Err(NotTaken::WrongBoot.into());
        }
        let closed = self.router.close_here(&scope, server.as_ref()).await.map_err(failed)?;
        Ok(u64::try_from(closed).unwrap_or(u64::MAX))
    }

    /// Another replica says that something has changed in the store.
    pub fn nudged(&self, about: Nudge) {
        tracing::trace!(?about, "another replica says that something has changed");
        match about {
            Nudge::Generations => self.look_at_generations(),
            Nudge::Told(change) => self.told_by_peer(&change),
            Nudge::Replicas => self.router.homes.look_for_replicas(),
            Nudge::Work | Nudge::Chains => {}
        }
    }

    fn received(&self, deadline: Duration) -> Received {
        let homes = &self.router.homes;
        let (trust, is_draining) = (homes.trust_left(), homes.is_draining());
        Received { hops: 0, epoch: None, held: None, trust, deadline, is_draining }
    }

    fn taken(&self, to: &BootId, received: Received) -> Result<Option<Epoch>, NotTaken> {
        if *to == self.boot { receive(received) } else { Err(NotTaken::WrongBoot) }
    }

    fn let_in(&self, handle: &Arc<Handle>) -> Result<Admitted, ExchangeRefused> {
        handle.admit().map_err(|why| match why {
            NotAdmitted::Busy => ExchangeRefused::Busy(self.router.refusal(&handle.server, NotOpened::Busy).detail),
            NotAdmitted::Opening | NotAdmitted::Retired => ExchangeRefused::NotTaken(NotTaken::NotOwner),
        })
    }

    /// What a session is opened by that another replica wants: the server as it is in force here.
    async fn binding_of(&self, wanted: &Wanted) -> Result<Binding, VerbError> {
        let SessionKey { server, scope, .. } = &wanted.key;
        if let Some(configuration) = &self.configuration {
            configuration.refresh().await?;
        }
        let headers = Some(&wanted.headers).filter(|headers| !headers.is_empty()).map(|all| all.as_slice().into());
        let unknown = || {
            let detail = format!("server `{server}` takes no part in the configuration of the replica that was asked");
            VerbError::new(Code::ConfigChanged, detail)
        };
        let binding = match self.in_force.get().binding(server) {
            Some(binding) => binding,
            None if personal::is_runtime_name(server) => {
                let users = self.users.as_ref().ok_or_else(unknown)?;
                users.of(&scope.user).await?.binding(server).ok_or_else(unknown)?
            }
            None => return Err(unknown()),
        };
        Ok(Binding { headers, ..binding })
    }
}

/// Whether somebody wants to hear of progress.
fn is_listened_to(request: &PeerRequest) -> bool {
    match request {
        PeerRequest::CallTool(tool) => tool.progress.is_some(),
        PeerRequest::Request(raw) => raw.progress.is_some(),
        PeerRequest::ListTools | PeerRequest::TaskQuestions(_) | PeerRequest::AnswerTask { .. } => false,
    }
}

/// The request, with its progress told to whoever waits for the call.
fn heard(request: PeerRequest, call: &Arc<Call>) -> PeerRequest {
    let listened = |progress: Option<_>| progress.map(|_| call.progress());
    match request {
        PeerRequest::CallTool(mut tool) => {
            tool.progress = listened(tool.progress);
            PeerRequest::CallTool(tool)
        }
        PeerRequest::Request(mut raw) => {
            raw.progress = listened(raw.progress);
            PeerRequest::Request(raw)
        }
        other => other,
    }
}

fn failed(error: VerbError) -> PeerError {
    PeerError::Failed { code: error.code, detail: error.detail, retry_after: error.retry_after }
}
