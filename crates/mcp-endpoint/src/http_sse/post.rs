//! Takes one message of a client.

use std::fmt;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use caribou_core::bounds::MAX_CALLS_PER_SESSION;

use super::work;
use crate::body;
use crate::fault::{Fault, INVALID_REQUEST};
use crate::legacy;
use crate::message::Message;
use crate::router::{Asked, Endpoint};

/// What the address of a POST says: of which session, and which replica holds its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) session: String,
    /// The life of that replica.
    pub(super) at: String,
}

impl Address {
    fn of(uri: &Uri) -> Option<Self> {
        let mut members = uri.query()?.split('&').filter_map(|member| member.split_once('='));
        let (("session_id", session), ("at", at), None) = (members.next()?, members.next()?, members.next()) else {
            return None;
        };
        Some(Self { session: session.to_owned(), at: at.to_owned() })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session_id={}&at={}", self.session, self.at)
    }
}

/// Answers one POST. What a request comes to is told on the stream; the status tells of the message alone.
pub(super) async fn post(endpoint: Arc<Endpoint>, asked: Asked, request: Request) -> Result<Response, Fault> {
    let (parts, body) = request.into_parts();
    let Some(address) = Address::of(&parts.uri) else {
        let why = "open the stream with GET, and send messages to the address that its first event names";
        return Err(Fault::of_envelope(StatusCode::BAD_REQUEST, INVALID_REQUEST, why));
    };
    let session = endpoint.session_named(&address.session, &asked.caller, &asked.place).await?;
    let is_here = address.at == endpoint.runtime.boot().as_str();
    let is_held =
        if is_here { endpoint.outboxes.holds(&session.id) } else { endpoint.runtime.knows_replica(&address.at) };
    if !is_held {
        return Err(Fault::no_session());
    }
    let body = body::read(&parts.headers, body, &endpoint.options).await?;
    let message = Message::read(&body)?;
    let (Some(method), Some(id)) = (&message.method, message.id) else {
        if let Some(says) = legacy::said(&message) {
            endpoint.hear(session.id, says).await?;
        }
        return Ok(StatusCode::ACCEPTED.into_response());
    };
    if endpoint.in_flight.count(&session.id) >= MAX_CALLS_PER_SESSION {
        return Err(Fault::no_room("as many requests of this client are under way as may be"));
    }
    work::begin(endpoint, asked, &parts.headers, (address, session), (method, id, message.params));
    Ok(StatusCode::ACCEPTED.into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_was_written() {
        let address = Address { session: "0a".to_owned(), at: "0-1".to_owned() };
        assert_eq!(Address::of(&format!("/sse/x?{address}").parse().unwrap()), Some(address));
        for other in ["/sse", "/sse?session_id=a", "/sse?at=b&session_id=a", "/sse?session_id=a&at=b&c=d"] {
            assert_eq!(Address::of(&other.parse().unwrap()), None, "{other}");
        }
    }
}
