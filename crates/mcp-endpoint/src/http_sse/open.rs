//! Opens the stream, and with it the session.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::Response;

use super::post::Address;
use crate::fault::Fault;
use crate::router::{Asked, Endpoint};
use crate::sessions::Agreed;
use crate::standing;

/// Answers the GET at `path`.
pub(super) async fn open(
    endpoint: &Arc<Endpoint>,
    asked: &Asked,
    path: &str,
    headers: &HeaderMap,
) -> Result<Response, Fault> {
    let id = endpoint.begin_session(&asked.caller, &asked.place, Agreed::NOTHING).await?;
    let opened = async {
        let session = endpoint.find_session(&id).await?.ok_or_else(Fault::no_session)?;
        let scope = asked.scope(headers, None, Some(&id))?;
        let address = Address { session: id.clone(), at: endpoint.runtime.boot().as_str().to_owned() };
        let first = format!("event: endpoint\ndata: {}{path}?{address}\n\n", endpoint.options.base_path);
        standing::open(endpoint, asked, scope, session, Some(first)).await
    };
    let opened = opened.await;
    if opened.is_err() {
        forget(endpoint, id);
    }
    opened
}

/// Ends the session of a stream that is over, on every replica. A store that is away forgets it when it was unused for long.
pub(crate) fn forget(endpoint: &Arc<Endpoint>, session: String) {
    let Ok(here) = tokio::runtime::Handle::try_current() else { return };
    let sessions = endpoint.options.sessions.clone();
    here.spawn(async move {
        if let Err(error) = sessions.end_client_session(session).await {
            tracing::debug!("the session of a stream that is over was not ended: {error}");
        }
    });
}
