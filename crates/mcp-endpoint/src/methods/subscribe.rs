//! `resources/subscribe` and `resources/unsubscribe` of a legacy session.
//!
//! The server is asked at once, and what it refuses is refused here. What it grants is put on record with the session:
//! whichever replica holds the session's stream watches it, for as long as the stream is open (mcp.md 14.6). A server that
//! cannot be asked now is asked then.

use caribou_core::raw::{Members, text};
use caribou_runtime::RequestSecrets;

use super::offers;
use crate::fault::Fault;
use crate::place::Place;
use crate::sessions::away;
use crate::watching::{Watching, Who};
use crate::work::Work;

/// What one client may be subscribed to, in characters of its URIs: a few hundred.
const MOST_CHARS: u32 = 32 * 1024;

pub(super) async fn run(work: &Work, is_wanted: bool) -> Result<String, Fault> {
    let client = &work.client;
    let offers = offers(&work.endpoint, &client.scope, &client.asked.place).await?;
    let Some(session) = client.session.as_ref().filter(|_| offers.subscribe) else {
        return Err(Fault::no_method(&work.method));
    };
    let params = work.params.as_deref().and_then(Members::of);
    let uri = params.as_ref().and_then(|params| text(params.get("uri")?));
    let Some(uri) = uri.filter(|uri| !uri.is_empty() && !uri.contains(char::is_control)) else {
        return Err(Fault::invalid_params("`params.uri` must be a URI"));
    };
    if is_wanted && client.asked.place == Place::All {
        let found = work.endpoint.runtime.server_of_uri(&client.scope, &uri).await;
        found.map_err(|error| Fault::no_resource(&error.detail, &uri))?;
    }
    let watching = if is_wanted { Some(watched(work, &uri).await?) } else { None };
    let sessions = &work.endpoint.options.sessions;
    let noted = sessions.subscribe_client(session.clone(), uri.clone().into_owned(), is_wanted, MOST_CHARS);
    if !noted.await.map_err(away)? {
        return Err(Fault::invalid_params("this session is subscribed to as much as it may be; unsubscribe from some"));
    }
    match watching {
        Some(watching) => work.endpoint.fresh.hold(session, &uri, watching),
        None => work.endpoint.fresh.let_go(session, &uri),
    }
    work.endpoint.runtime.client_changed(session);
    Ok("{}".to_owned())
}

/// The resource, watched.
///
/// # Errors
/// The server refuses that, or the caller may not.
async fn watched(work: &Work, uri: &str) -> Result<Watching, Fault> {
    let (asked, scope) = (work.client.asked.clone(), work.client.scope.clone());
    // As the session's stream watches, which carries no secrets.
    let who = Who { asked, scope, secrets: RequestSecrets::default() };
    let mut watching = Watching::new(&work.endpoint, who);
    watching.set(&[uri.to_owned()]).await;
    match watching.refusal().await {
        Some(refusal) => Err(refusal.into()),
        None => Ok(watching),
    }
}
