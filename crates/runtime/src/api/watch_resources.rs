//! Watch resources of one server for a client, for as long as it wants.
//!
//! They are watched in the session of the client's scope, wherever it lives, since what a server tells belongs to one
//! session. A session that ends is opened again, after a pause that grows and differs from client to client; what may
//! have been missed meanwhile is told as one change (mcp.md 14.3). Watching keeps a session from falling idle and holds
//! up nothing else: neither a call nor the hand-over of its replica.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use caribou_core::credentials::CallerHeaders;
use caribou_core::failure::Code;
use caribou_core::ids::{RequestId, Scope, ServerName};
use caribou_core::raw::{Members, text};
use caribou_core::tool::visible_name;
use caribou_ports::mcp::{CallError, LISTEN, Progress, ProgressSink, RawRequest};
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::time::{Instant, sleep};

use super::one_server::enabled;
use crate::Runtime;
use crate::audit::Entry as Row;
use crate::call::{call_failed, call_headers};
use crate::caller::{Caller, RequestSecrets};
use crate::chance::chance;
use crate::config::Binding;
use crate::error::VerbError;

/// The first and the longest pause before resources are watched again.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// Watching that lasted this long did work: the next pause is a short one.
const WORKED: Duration = Duration::from_secs(30);

/// What a client wants to watch.
pub struct WatchResources {
    /// The server.
    pub server: ServerName,
    /// The URIs, as the server knows them.
    pub uris: Vec<String>,
    /// Whether they were watched before, so that something may have been missed.
    pub is_again: bool,
    /// Who asks.
    pub caller: Caller,
    /// For whom, in which thread.
    pub scope: Scope,
    /// Secrets of the request, by key.
    pub secrets: RequestSecrets,
    /// Names the request in logs.
    pub request_id: RequestId,
    /// Told the URI of each resource that changed, or may have. Must not block.
    pub changed: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Runtime {
    /// Watches until it is dropped.
    ///
    /// # Errors
    /// It is of no use to go on: the caller may not, the server is gone, or refuses it.
    pub async fn watch_resources(&self, wanted: WatchResources) -> VerbError {
        let mut row = Row::new("watch_resources", &wanted.caller).named(&wanted.request_id).within(&wanted.scope);
        row.server = Some(wanted.server.clone());
        // On record is that it began: how long a client listens says nothing.
        if let Err(error) = self.audit.around(row, self.may_watch(&wanted)).await {
            return error;
        }
        let is_open = Arc::new(AtomicBool::new(wanted.is_again));
        let mut pause = PAUSE.0;
        loop {
            let began = Instant::now();
            let error = match self.watch_once(&wanted, &is_open).await {
                Watched::Over(error) => return error,
                Watched::Lost(error) => error,
            };
            if began.elapsed() > WORKED {
                pause = PAUSE.0;
            }
            tracing::debug!(server = %wanted.server, request_id = %wanted.request_id, "watched again soon: {error}");
            sleep(pause.mul_f64(0.5 + chance())).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    async fn watch_once(&self, wanted: &WatchResources, was_open: &Arc<AtomicBool>) -> Watched {
        let binding = match self.may_watch(wanted).await {
            Ok(binding) => binding,
            Err(error) => return Watched::Over(error),
        };
        let server = &binding.server;
        let headers = match CallerHeaders::plan(server, &wanted.scope.user, &wanted.secrets.0) {
            Ok(headers) => headers,
            Err(denied) => return Watched::Over(VerbError::new(Code::Denied, denied.to_string())),
        };
        let admitted = match self.router.admit(&binding, &wanted.scope, &headers).await {
            Ok(admitted) => admitted,
            Err(error) => return Watched::Lost(error),
        };
        let filter = json!({ "notifications": { "resourceSubscriptions": wanted.uris } });
        let Ok(params) = to_raw_value(&filter) else { return Watched::Over(VerbError::fault()) };
        let (handle, session) = (admitted.handle.clone(), admitted.session.clone());
        // It is no call in flight: the session may be handed over.
        drop(admitted);
        let request = RawRequest {
            method: LISTEN.into(),
            params,
            headers: call_headers(server, &headers),
            progress: Some(sink(wanted, was_open.clone())),
        };
        let outcome = tokio::select! {
            outcome = session.request(request) => outcome,
            never = handle.stays_used() => match never {},
        };
        handle.asked(&outcome);
        match outcome {
            // The server ended it in good order.
            Ok(_) => Watched::Lost(VerbError::new(Code::Unavailable, "the server ended the subscription")),
            Err(error @ (CallError::Rpc { .. } | CallError::Denied(_) | CallError::Malformed(_))) => {
                Watched::Over(call_failed(server, LISTEN, error, headers.values()))
            }
            Err(error) => Watched::Lost(call_failed(server, LISTEN, error, headers.values())),
        }
    }

    /// Whoever may read resources of a server may hear that they changed.
    async fn may_watch(&self, wanted: &WatchResources) -> Result<Binding, VerbError> {
        wanted.secrets.check()?;
        let snapshot = self.sight(&wanted.scope.user).await.discovered(&wanted.server).await;
        let binding = enabled(&snapshot, &wanted.server)?.binding();
        let binding = binding.ok_or_else(|| VerbError::new(Code::NotFound, "the server does not take part"))?;
        let named = visible_name(binding.server.shown_name(), "resources_read", true);
        wanted.caller.principal.uses(&named)?;
        let judged = self.options.guardrails.judge(&named);
        judged.map_err(|reason| VerbError::new(Code::Denied, format!("`{named}`: {reason}")))?;
        Ok(binding)
    }
}

/// How watching ended.
enum Watched {
    /// For good.
    Over(VerbError),
    /// It is begun again.
    Lost(VerbError),
}

fn sink(wanted: &WatchResources, was_open: Arc<AtomicBool>) -> ProgressSink {
    let (changed, uris) = (wanted.changed.clone(), wanted.uris.clone());
    Arc::new(move |report| match report {
        Progress::Progress(_) => {
            // What changed while nobody watched was told to nobody.
            if was_open.swap(true, Ordering::AcqRel) {
                uris.iter().for_each(|uri| changed(uri));
            }
        }
        Progress::Message(params) => {
            if let Some(uri) = Members::of(&params).and_then(|params| text(params.get("uri")?)) {
                changed(&uri);
            }
        }
    })
}
