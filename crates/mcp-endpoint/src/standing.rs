//! Streams that stay open: what changes is told on them (mcp.md §3.3, §5).
//!
//! A legacy session has one, opened by GET; a newer one takes the place of an older, since a message goes on exactly
//! one stream. A modern client opens one by `subscriptions/listen`; every message on it names that request. They end
//! when the session does, or the replica.

use std::convert::Infallible;
use std::sync::{Arc, PoisonError};

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::Response;
use caribou_core::raw::Members;
use caribou_runtime::ToolChanges;
use futures::stream;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::answer::{COMMENT, event, event_stream};
use crate::dress::dressed;
use crate::fault::Fault;
use crate::message::{notification, response};
use crate::router::{Endpoint, takes_events};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

struct Stream {
    endpoint: Arc<Endpoint>,
    /// Told first.
    first: Option<String>,
    /// `None` = nobody asked for them.
    changes: Option<ToolChanges>,
    /// What a change is told by.
    changed: String,
    /// Told last, if the replica ends the stream.
    last: Option<String>,
    /// The legacy session it belongs to.
    session: Option<String>,
    ended: CancellationToken,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

impl Stream {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if let Some(first) = self.first.take() {
            return Some((Ok(first.into()), self));
        }
        if self.is_over {
            return None;
        }
        let text = tokio::select! {
            () = self.ended.cancelled() => self.over(),
            () = self.endpoint.options.stopping.cancelled() => self.over(),
            () = next_of(self.changes.as_mut()) => event(&self.changed),
            () = tokio::time::sleep(self.endpoint.options.keep_alive) => {
                if self.is_session_gone().await { self.over() } else { COMMENT.to_owned() }
            }
        };
        Some((Ok(text.into()), self))
    }

    fn over(&mut self) -> String {
        self.is_over = true;
        self.last.take().unwrap_or_default()
    }

    /// A session with an open stream is used. One that another replica ended is gone; a store that cannot be asked says
    /// nothing.
    async fn is_session_gone(&self) -> bool {
        match &self.session {
            Some(session) => matches!(self.endpoint.find_session(session).await, Ok(None)),
            None => false,
        }
    }
}

async fn next_of(changes: Option<&mut ToolChanges>) {
    match changes {
        Some(changes) => changes.next().await,
        None => std::future::pending().await,
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let Some(session) = &self.session else { return };
        let mut streams = self.endpoint.streams.lock().unwrap_or_else(PoisonError::into_inner);
        // Cancelled: a newer one may have taken its place.
        if !self.ended.is_cancelled() {
            streams.remove(session);
        }
    }
}

/// Opens the stream of a legacy session.
pub(crate) fn open(endpoint: &Arc<Endpoint>, session: String) -> Result<Response, Fault> {
    let place = place(endpoint)?;
    let ended = CancellationToken::new();
    let before = {
        let mut streams = endpoint.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.insert(session.clone(), ended.clone())
    };
    if let Some(before) = before {
        before.cancel();
    }
    let stream = Stream {
        endpoint: endpoint.clone(),
        // The client sees that the stream is open.
        first: Some(COMMENT.to_owned()),
        changes: Some(endpoint.runtime.tool_changes()),
        changed: format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{TOOLS_CHANGED}\"}}"),
        last: None,
        session: Some(session),
        ended,
        is_over: false,
        _place: place,
    };
    Ok(event_stream(stream::unfold(stream, Stream::next)))
}

/// Opens the stream of a modern `subscriptions/listen`.
pub(crate) async fn subscribe(
    endpoint: &Arc<Endpoint>,
    headers: &HeaderMap,
    id: &RawValue,
    params: Option<&RawValue>,
) -> Result<Response, Fault> {
    if !takes_events(headers) {
        return Err(Fault::invalid_request(
            "a subscription is answered by an event stream: accept `text/event-stream`",
        ));
    }
    let params = params.and_then(Members::of);
    let filter = params.as_ref().and_then(|params| params.get("notifications")).and_then(Members::of);
    let Some(filter) = filter else {
        return Err(Fault::invalid_params("`params.notifications` must be an object"));
    };
    let wants_tools = filter.get("toolsListChanged").is_some_and(|wants| wants.get() == "true");
    let granted = if wants_tools { json!({ "toolsListChanged": true }) } else { json!({}) };
    let meta = format!("{{\"{SUBSCRIPTION}\":{}}}", id.get());
    let acknowledged = format!("{{\"notifications\":{granted},\"_meta\":{meta}}}");
    let result = dressed(caribou_core::era::Era::Modern, "subscriptions/listen", &format!("{{\"_meta\":{meta}}}"));
    let stream = Stream {
        endpoint: endpoint.clone(),
        first: Some(event(&notification("notifications/subscriptions/acknowledged", &acknowledged))),
        changes: wants_tools.then(|| endpoint.runtime.tool_changes()),
        changed: notification(TOOLS_CHANGED, &format!("{{\"_meta\":{meta}}}")),
        last: Some(event(&response(id, &result))),
        session: None,
        ended: CancellationToken::new(),
        is_over: false,
        _place: place(endpoint)?,
    };
    Ok(event_stream(stream::unfold(stream, Stream::next)))
}

fn place(endpoint: &Endpoint) -> Result<OwnedSemaphorePermit, Fault> {
    let place = endpoint.stream_places.clone().try_acquire_owned();
    place.map_err(|_| Fault::no_room("as many event streams are open as may be"))
}
