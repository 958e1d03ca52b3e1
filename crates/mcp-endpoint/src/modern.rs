//! Requests of the modern era: each stands for itself, nothing is remembered (mcp.md §2, §3.1).

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use caribou_core::era::Era;

use crate::answer;
use crate::era::demand_modern;
use crate::fault::Fault;
use crate::message::Message;
use crate::meta::Meta;
use crate::notices::Wanted;
use crate::router::{Asked, Endpoint, takes_events};
use crate::standing;
use crate::work::{Client, Work, names_thread};

/// Asks for a standing stream of changes.
const LISTEN: &str = "subscriptions/listen";

/// Answers one POST.
pub(crate) async fn post(
    endpoint: Arc<Endpoint>,
    asked: Asked,
    headers: &HeaderMap,
    message: &Message<'_>,
) -> Result<Response, Fault> {
    let Some(method) = &message.method else {
        return Err(Fault::invalid_request("a client of this revision sends no answers"));
    };
    // Core defines none over HTTP; closing a stream is the way to cancel.
    let Some(id) = message.id else { return Ok(StatusCode::ACCEPTED.into_response()) };
    demand_modern(headers, message, method)?;
    let meta = Meta::of(message.params).for_method()?;
    let client = Client {
        era: Era::Modern,
        scope: asked.scope(headers, meta.thread.as_deref(), None)?,
        wanted: meta.log_level.map_or(Wanted::No, Wanted::From),
        session: None,
        names_thread: names_thread(headers, &meta),
        takes_tasks: meta.takes_tasks,
        asked,
    };
    if method == LISTEN {
        return standing::subscribe(&endpoint, client, meta.secrets, headers, (id, message.params)).await;
    }
    let work = Work::new(endpoint, client, headers, (method, id, message.params), meta);
    Ok(answer::answer(work, takes_events(headers)).await)
}
