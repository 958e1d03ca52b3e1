//! Sessions of legacy clients (mcp.md §3.3): opened by `initialize`, named by a header, ended by DELETE or by silence.
//!
//! A session is only for the principal that opened it, at the address it was opened at; to all others it is not there
//! (invariant P1).

use axum::http::{HeaderMap, StatusCode};
use caribou_mcp::SESSION_ID;
use caribou_ports::store::{ClientSession, StoreError};
use caribou_runtime::Caller;
use uuid::Uuid;

use crate::fault::{Fault, INVALID_REQUEST};
use crate::place::Place;
use crate::router::Endpoint;

/// Sessions that silence ended, forgotten with each new one.
const FORGET_WITH_EACH: u32 = 16;

/// Capabilities that are larger than this are not remembered: nothing that we do depends on the rest.
const MAX_CAPABILITIES_BYTES: usize = 16 * 1024;

/// What was agreed on with a client that opens a session.
pub(crate) struct Agreed<'a> {
    pub(crate) version: &'a str,
    /// JSON text of an object.
    pub(crate) capabilities: &'a str,
}

impl Agreed<'_> {
    /// What is agreed on with a client before it said anything.
    pub(crate) const NOTHING: Self = Self { version: "", capabilities: "{}" };

    /// The capabilities, as far as they are remembered.
    pub(crate) fn kept_capabilities(&self) -> &str {
        if self.capabilities.len() <= MAX_CAPABILITIES_BYTES { self.capabilities } else { "{}" }
    }
}

impl Endpoint {
    /// Opens a session; its name.
    pub(crate) async fn begin_session(
        &self,
        caller: &Caller,
        place: &Place,
        agreed: Agreed<'_>,
    ) -> Result<String, Fault> {
        let session = ClientSession {
            // Unguessable; and fit to name a thread.
            id: Uuid::new_v4().simple().to_string(),
            principal: caller.principal.id.clone(),
            server: place.server().map(|server| server.as_str().to_owned()),
            version: agreed.version.to_owned(),
            capabilities: agreed.kept_capabilities().to_owned(),
            log_level: None,
            subscriptions: Vec::new(),
        };
        let (id, sessions) = (session.id.clone(), &self.options.sessions);
        sessions.forget_client_sessions(self.options.session_idle, FORGET_WITH_EACH).await.map_err(away)?;
        if sessions.begin_client_session(session, self.options.max_sessions).await.map_err(away)? {
            return Ok(id);
        }
        Err(Fault::no_room("as many sessions of clients are open as may be"))
    }

    /// The session that these headers name, if it is the caller's and of this place.
    pub(crate) async fn session(
        &self,
        headers: &HeaderMap,
        caller: &Caller,
        place: &Place,
    ) -> Result<ClientSession, Fault> {
        let Some(named) = headers.get(SESSION_ID) else {
            let why = "the header `Mcp-Session-Id` is missing: initialize first";
            return Err(Fault::of_envelope(StatusCode::BAD_REQUEST, INVALID_REQUEST, why));
        };
        self.session_named(named.to_str().map_err(|_| Fault::no_session())?, caller, place).await
    }

    /// The session of this name, if it is the caller's and of this place.
    pub(crate) async fn session_named(&self, id: &str, caller: &Caller, place: &Place) -> Result<ClientSession, Fault> {
        let session = self.find_session(id).await?.ok_or_else(Fault::no_session)?;
        let is_of_place = session.server.as_deref() == place.server().map(|server| server.as_str());
        if session.principal != caller.principal.id || !is_of_place {
            return Err(Fault::no_session());
        }
        Ok(session)
    }

    /// The session of this name, which counts as used.
    pub(crate) async fn find_session(&self, id: &str) -> Result<Option<ClientSession>, Fault> {
        // Ours are no longer; nothing else is looked for.
        if id.len() > 64 {
            return Ok(None);
        }
        self.options.sessions.use_client_session(id.to_owned(), self.options.session_idle).await.map_err(away)
    }
}

/// The store cannot be asked.
pub(crate) fn away(error: StoreError) -> Fault {
    tracing::warn!("sessions of clients: {error}");
    Fault::no_room("sessions cannot be looked up now; try again")
}
