//! The access token of each request to a server with `oauth` (mcp.md §10, contract 8.1).
//!
//! Owns what a refused token leads to: 401 means that the request was not processed, so it is sent once more with a
//! fresh token, and a second 401 is the end of it. The chain of tokens is somebody else's; nothing is kept here. Keeps
//! S2 (one request may go out twice only after a complete 401) and O3.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use caribou_ports::access_token::{AccessToken, AccessTokens, NoToken};
use caribou_ports::mcp::CallError;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use url::Url;

use super::link::{Link, Reached};
use super::refusal::Refused;

/// Where a connection has its access tokens from.
pub(crate) struct Bearer {
    tokens: Arc<dyn AccessTokens>,
    /// Whether requests go out without a token when there is none.
    is_optional: bool,
    /// Whether it was told that they do.
    warned: AtomicBool,
}

/// One request that can be sent more than once.
pub(super) struct Sendable<'u> {
    pub(super) method: Method,
    pub(super) url: &'u Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
}

impl Bearer {
    pub(super) fn new(tokens: Arc<dyn AccessTokens>, is_optional: bool) -> Self {
        Self { tokens, is_optional, warned: AtomicBool::new(false) }
    }

    /// Sends a request with the token there is, and once more with a fresh one if that is refused.
    ///
    /// # Errors
    /// There is no token, or the server accepts none: `Denied`, or `NotSent` where it may be asked again later.
    pub(super) async fn send(&self, link: &Link, request: Sendable<'_>) -> Result<Reached, CallError> {
        let token = match self.tokens.current().await {
            Ok(token) => token,
            Err(none) if self.is_optional => {
                // Contract 7.4: a discovery goes on without this header, the servers beside it are not affected.
                if !self.warned.swap(true, Ordering::Relaxed) {
                    tracing::warn!(server = %link.server().name, "listing its tools without an access token: {none}");
                }
                let (reached, kept) = link.follow(request).await?;
                // Why there is no token says more than that the server wants one.
                let is_wanted = kept && reached.response.status() == StatusCode::UNAUTHORIZED;
                return if is_wanted { Err(without_token(none)) } else { Ok(reached) };
            }
            Err(none) => return Err(without_token(none)),
        };
        let (reached, is_refused) = self.send_with(link, &request, &token).await?;
        if !is_refused {
            return Ok(reached);
        }
        self.tokens.rejected(&token);
        let fresh = match self.tokens.current().await {
            Ok(fresh) => fresh,
            Err(none) => return Err(without_fresh_token(link, reached.response, none).await),
        };
        if fresh.serial == token.serial {
            return Err(refused_for_good(link, reached.response).await);
        }
        match self.send_with(link, &request, &fresh).await? {
            (reached, false) => Ok(reached),
            // The fresh token stays: to reject it too would cost a refresh before each later call, and another after.
            (reached, true) => Err(refused_for_good(link, reached.response).await),
        }
    }

    /// Sends the request with this token; whether the server refused it.
    async fn send_with(
        &self,
        link: &Link,
        request: &Sendable<'_>,
        token: &AccessToken,
    ) -> Result<(Reached, bool), CallError> {
        link.hide(token);
        let mut value = HeaderValue::from_str(token.header.expose())
            .map_err(|_| CallError::NotSent(format!("{}: its access token cannot stand in a header", link.name())))?;
        value.set_sensitive(true);
        let mut headers = request.headers.clone();
        headers.insert(header::AUTHORIZATION, value);
        let Sendable { method, url, body, .. } = request;
        let with_token = Sendable { method: method.clone(), url, headers, body: body.clone() };
        let (reached, kept) = link.follow(with_token).await?;
        // Another origin never saw the token: what it says of credentials is not about it.
        let is_refused = kept && reached.response.status() == StatusCode::UNAUTHORIZED;
        Ok((reached, is_refused))
    }
}

fn without_token(none: NoToken) -> CallError {
    if none.needs_person { CallError::Denied(none.message) } else { CallError::NotSent(none.message) }
}

/// A refused token has no successor: the refusal may say where to authorise.
async fn without_fresh_token(link: &Link, response: reqwest::Response, none: NoToken) -> CallError {
    let refused = Refused::read(response, &link.masker()).await;
    let message = format!("{}{}", none.message, refused.where_to_authorise());
    without_token(NoToken { message, ..none })
}

async fn refused_for_good(link: &Link, response: reqwest::Response) -> CallError {
    Refused::read(response, &link.masker()).await.asks_for_a_person(&link.name())
}
