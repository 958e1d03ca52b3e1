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
use caribou_core::raw::{Members, elements, text};
use caribou_core::tool::visible_name;
use caribou_ports::mcp::{CallError, LISTEN, Progress, ProgressSink, RawRequest};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::Notify;
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

/// Hears which URIs a server tells of.
type Granted = Arc<dyn Fn(&[String]) + Send + Sync>;

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
    /// Told, each time that watching begins, which of the URIs the server tells of. Must not block.
    pub granted: Granted,
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
        let refused = Arc::new(Notify::new());
        let request = RawRequest {
            method: LISTEN.into(),
            params,
            headers: call_headers(server, &headers),
            progress: Some(sink(wanted, was_open.clone(), refused.clone())),
        };
        let outcome = tokio::select! {
            outcome = session.request(request) => outcome,
            () = refused.notified() => return Watched::Over(not_told(server.shown_name())),
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
        wanted.caller.principal.holds(&binding.server.required_scopes)?;
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

fn not_told(server: &str) -> VerbError {
    VerbError::new(Code::UpstreamError, format!("server `{server}` does not tell of changes of this resource"))
}

/// Those of `uris` that the server grants. What is no list of them says nothing, and is taken for all.
fn granted(acknowledged: &RawValue, uris: &[String]) -> Vec<String> {
    let filter = Members::of(acknowledged).and_then(|params| Members::of(params.get("notifications")?));
    let Some(filter) = filter else { return uris.to_vec() };
    let named = filter.get("resourceSubscriptions").and_then(elements).unwrap_or_default();
    let named: Vec<_> = named.into_iter().filter_map(text).collect();
    uris.iter().filter(|uri| named.iter().any(|named| named == *uri)).cloned().collect()
}

fn sink(wanted: &WatchResources, was_open: Arc<AtomicBool>, refused: Arc<Notify>) -> ProgressSink {
    let (changed, uris, tell) = (wanted.changed.clone(), wanted.uris.clone(), wanted.granted.clone());
    Arc::new(move |report| match report {
        Progress::Progress(acknowledged) => {
            let uris = granted(&acknowledged, &uris);
            if uris.is_empty() {
                return refused.notify_one();
            }
            tell(&uris);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_leaves_out_it_does_not_grant() {
        // mcp.md §5.
        let uris = ["a://1".to_owned(), "a://2".to_owned()];
        for (acknowledged, expected) in [
            (r#"{"notifications":{"resourceSubscriptions":["a://2","a://3"]}}"#, &uris[1..]),
            (r#"{"notifications":{"toolsListChanged":true}}"#, &[]),
            ("{}", &uris[..]),
        ] {
            let acknowledged = RawValue::from_string(acknowledged.to_owned()).unwrap();
            assert_eq!(granted(&acknowledged, &uris), expected, "{acknowledged}");
        }
    }
}
