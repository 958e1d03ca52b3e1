//! Requests of the legacy era: `initialize`, then a session (mcp.md §3.3).

use std::sync::{Arc, PoisonError};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use caribou_core::era::{Era, LATEST_LEGACY_VERSION, LEGACY_VERSIONS};
use caribou_core::raw::{Members, text};
use caribou_mcp::{PROTOCOL_VERSION, SESSION_ID};
use caribou_ports::peers::ClientSays;
use caribou_ports::store::ClientSession;
use serde_json::json;
use serde_json::value::RawValue;

use crate::answer;
use crate::dress::our_info;
use crate::fault::Fault;
use crate::message::{Message, response};
use crate::meta::{Level, Meta, capabilities};
use crate::methods::offers;
use crate::notices::Wanted;
use crate::router::{Asked, Endpoint, not_taken, takes_events};
use crate::sessions::{Agreed, away};
use crate::standing;
use crate::work::{Client, Work, names_thread};

/// Answers one POST.
pub(crate) async fn post(
    endpoint: Arc<Endpoint>,
    asked: Asked,
    headers: &HeaderMap,
    message: &Message<'_>,
) -> Result<Response, Fault> {
    if let (Some("initialize"), Some(_)) = (message.method.as_deref(), message.id) {
        return initialize(&endpoint, &asked, message).await;
    }
    let session = endpoint.session(headers, &asked.caller, &asked.place).await?;
    demand_version(headers)?;
    let (Some(method), Some(id)) = (&message.method, message.id) else {
        if let Some(says) = said(message) {
            endpoint.hear(session.id, says).await?;
        }
        return Ok(StatusCode::ACCEPTED.into_response());
    };
    let takes_events = takes_events(headers);
    let work = work(endpoint, asked, (headers, takes_events), session, (method, id, message.params))?;
    Ok(answer::answer(work, takes_events).await)
}

/// A request of this session, ready to be done.
///
/// # Errors
/// What it says of itself means nothing.
pub(crate) fn work(
    endpoint: Arc<Endpoint>,
    asked: Asked,
    (headers, takes_events): (&HeaderMap, bool),
    session: ClientSession,
    (method, id, params): (&str, &RawValue, Option<&RawValue>),
) -> Result<Work, Fault> {
    let mut meta = Meta::of(params).for_method()?;
    if takes_events {
        // Only what is asked on a stream that is read can be answered.
        meta.passed.extend(capabilities(&session.capabilities));
    }
    let wanted = session.log_level.as_deref().and_then(Level::parse).map_or(Wanted::All, Wanted::From);
    let client = Client {
        era: Era::Legacy,
        scope: asked.scope(headers, meta.thread.as_deref(), Some(&session.id))?,
        wanted,
        session: Some(session.id),
        names_thread: names_thread(headers, &meta),
        takes_tasks: has_tasks(&session.version),
        asked,
    };
    Ok(Work::new(endpoint, client, headers, (method, id, params), meta))
}

/// Opens the standing stream of a session.
pub(crate) async fn listen(endpoint: &Arc<Endpoint>, asked: &Asked, headers: &HeaderMap) -> Result<Response, Fault> {
    // The modern era has no such stream.
    if !headers.contains_key(SESSION_ID) {
        return Ok(not_taken());
    }
    let session = endpoint.session(headers, &asked.caller, &asked.place).await?;
    let scope = asked.scope(headers, None, Some(&session.id))?;
    standing::open(endpoint, asked, scope, session, None).await
}

/// Ends a session, on every replica.
pub(crate) async fn end(endpoint: &Arc<Endpoint>, asked: &Asked, headers: &HeaderMap) -> Result<Response, Fault> {
    if !headers.contains_key(SESSION_ID) {
        return Ok(not_taken());
    }
    let session = endpoint.session(headers, &asked.caller, &asked.place).await?;
    endpoint.options.sessions.end_client_session(session.id.clone()).await.map_err(away)?;
    endpoint.fresh.let_go_all(&session.id);
    let stream = endpoint.streams.lock().unwrap_or_else(PoisonError::into_inner).remove(&session.id);
    if let Some(stream) = stream {
        stream.cancel();
    }
    Ok(StatusCode::OK.into_response())
}

async fn initialize(endpoint: &Arc<Endpoint>, asked: &Asked, message: &Message<'_>) -> Result<Response, Fault> {
    let Some(id) = message.id else { return Err(Fault::invalid_request("`initialize` is a request")) };
    let (agreed, result) = agree(endpoint, asked, message.params).await?;
    let session = endpoint.begin_session(&asked.caller, &asked.place, agreed).await?;
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let session = HeaderValue::from_str(&session).map_err(|_| Fault::bug())?;
    Ok(([kind, (SESSION_ID, session)], response(id, &result)).into_response())
}

/// What is agreed on with a client that says this of itself, and the result that it reads.
///
/// # Errors
/// It names no revision; or there is no such place.
pub(crate) async fn agree<'p>(
    endpoint: &Endpoint,
    asked: &Asked,
    params: Option<&'p RawValue>,
) -> Result<(Agreed<'p>, String), Fault> {
    let params = params.and_then(Members::of);
    let named = params.as_ref().and_then(|params| text(params.get("protocolVersion")?));
    let Some(named) = named else {
        return Err(Fault::invalid_params("`params.protocolVersion` must be a string"));
    };
    let version = LEGACY_VERSIONS.into_iter().find(|ours| **ours == *named).unwrap_or(LATEST_LEGACY_VERSION);
    let scope = asked.caller.scope(None, None)?;
    let mut capabilities = offers(endpoint, &scope, &asked.place).await?.capabilities();
    if has_tasks(version) && endpoint.runtime.follows_tasks() {
        capabilities["tasks"] = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
    }
    let theirs = params.as_ref().and_then(|params| params.get("capabilities"));
    let theirs = theirs.map(|theirs| theirs.get()).filter(|theirs| theirs.starts_with('{')).unwrap_or("{}");
    let result = json!({ "protocolVersion": version, "capabilities": capabilities, "serverInfo": our_info() });
    Ok((Agreed { version, capabilities: theirs }, result.to_string()))
}

/// Whether a revision of this era has tasks: the last one (mcp.md §9.1).
pub(crate) fn has_tasks(version: &str) -> bool {
    version == LATEST_LEGACY_VERSION
}

/// A client that says its revision says one of this era.
fn demand_version(headers: &HeaderMap) -> Result<(), Fault> {
    let sent = headers.get(&PROTOCOL_VERSION).map(|sent| sent.to_str().unwrap_or_default().trim());
    match sent {
        Some(sent) if !LEGACY_VERSIONS.contains(&sent) => {
            Err(Fault::invalid_request("the header `MCP-Protocol-Version` names a revision that was not agreed on"))
        }
        _ => Ok(()),
    }
}

/// What a message says that is no request and matters here.
pub(crate) fn said(message: &Message<'_>) -> Option<ClientSays> {
    match (message.method.as_deref(), message.id) {
        (Some("notifications/cancelled"), None) => {
            let params = message.params.and_then(Members::of)?;
            Some(ClientSays::Cancels(params.get("requestId")?.get().to_owned()))
        }
        (None, Some(id)) => {
            let id = id.get().to_owned();
            let refused = || Some(ClientSays::Error(id.clone(), message.error?.to_owned()));
            message.result.map(|result| ClientSays::Result(id.clone(), result.to_owned())).or_else(refused)
        }
        _ => None,
    }
}
