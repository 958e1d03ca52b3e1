//! One server's end of HTTP: where requests go, what every one of them carries, and how redirects are followed.
//!
//! Owns the configured headers and the rule that they never cross origins (architecture.md §9); `redirect` owns which
//! redirect is followed, `answer` what an answer means. A request that surely did not arrive fails as `NotSent`, one
//! that may have arrived as `StreamEnded`; none is sent twice (S2). Keeps O3.

use std::sync::Arc;

use bytes::Bytes;
use caribou_core::config::{Remote, ServerConfig};
use caribou_ports::mcp::{CallError, OpenError};
use http::{HeaderMap, Method, header};
use url::Url;

use super::client::describe;
use crate::transport::redirect::{MAX_REDIRECTS, next_hop, same_origin, without_query};
use crate::wire::headers::{self, Configured};

/// The way to one server.
pub(crate) struct Link {
    client: reqwest::Client,
    server: Arc<ServerConfig>,
    /// The configured URL.
    url: Url,
    /// The configured headers.
    own: HeaderMap,
}

/// An answer, and the URL that gave it if that was not the one asked.
pub(crate) struct Reached {
    /// Status, headers and the body still to be read.
    pub(crate) response: reqwest::Response,
    /// Where redirects led.
    pub(crate) moved_to: Option<Url>,
}

impl Link {
    /// The way to `remote`; headers that the protocol owns are left out, with a warning.
    ///
    /// # Errors
    /// `NotStartable`: the URL or a header cannot be used. Names which, never a value.
    pub(crate) fn new(client: reqwest::Client, server: Arc<ServerConfig>, remote: &Remote) -> Result<Self, OpenError> {
        let refuse = |why: String| OpenError::NotStartable(format!("server `{}`: {why}", server.name));
        let configured = Configured::from_pairs(&remote.headers).map_err(refuse)?;
        if !configured.ignored.is_empty() {
            tracing::warn!(server = %server.name, headers = ?configured.ignored, "configured headers that the protocol owns are not sent");
        }
        // Building a request moves credentials written into the URL out of it, into a header.
        let request = client.get(&remote.url).build().map_err(|_| refuse("its `url` is no HTTP URL".to_owned()))?;
        if !matches!(request.url().scheme(), "http" | "https") {
            return Err(refuse("its `url` is neither http nor https".to_owned()));
        }
        let mut own = configured.headers;
        if let Some(credentials) = request.headers().get(header::AUTHORIZATION) {
            own.entry(header::AUTHORIZATION).or_insert_with(|| credentials.clone());
        }
        let url = request.url().clone();
        Ok(Self { client, server, url, own })
    }

    /// The server.
    pub(crate) fn server(&self) -> &Arc<ServerConfig> {
        &self.server
    }

    /// The configured URL.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// The headers that every POST to `url` starts from.
    pub(crate) fn post_headers(&self, url: &Url) -> HeaderMap {
        if same_origin(url, &self.url) { headers::of_post(&self.own) } else { headers::of_post(&HeaderMap::new()) }
    }

    /// The headers that every GET of `url` starts from.
    pub(crate) fn get_headers(&self, url: &Url) -> HeaderMap {
        if same_origin(url, &self.url) { headers::of_get(&self.own) } else { headers::of_get(&HeaderMap::new()) }
    }

    /// Sends one request, following redirects as far as allowed, and waits for the head of the answer.
    ///
    /// # Errors
    /// `NotSent` or `StreamEnded`, by whether the request may have arrived; `Malformed` for a refused redirect.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &Url,
        mut headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<Reached, CallError> {
        let mut moved_to: Option<Url> = None;
        for _ in 0..=MAX_REDIRECTS {
            let here = moved_to.as_ref().unwrap_or(url);
            let mut request = reqwest::Request::new(method.clone(), here.clone());
            *request.headers_mut() = headers.clone();
            *request.body_mut() = body.clone().map(reqwest::Body::from);
            let response = self.client.execute(request).await.map_err(|error| self.not_reached(&error))?;
            let allowed = &self.server.allowed_redirect_origins;
            let Some(next) = next_hop(&method, here, response.status(), response.headers(), allowed)
                .map_err(|why| CallError::Malformed(format!("{}: {why}", self.name())))?
            else {
                return Ok(Reached { response, moved_to });
            };
            if !same_origin(&next, here) {
                self.strip(&mut headers);
            }
            moved_to = Some(next);
        }
        Err(CallError::Malformed(format!("{} redirects more than {MAX_REDIRECTS} times", self.name())))
    }

    /// How the server is named in messages: its name and where it is.
    pub(crate) fn name(&self) -> String {
        format!("server `{}` ({})", self.server.name, without_query(&self.url))
    }

    /// Takes the configured headers out, before another origin could see them.
    fn strip(&self, headers: &mut HeaderMap) {
        for name in self.own.keys() {
            headers.remove(name);
        }
    }

    /// The error of an answer that broke off.
    pub(crate) fn broke_off(&self, error: &reqwest::Error) -> CallError {
        let cause = self.server.masker.mask(&describe(error));
        CallError::StreamEnded(format!("{} broke off in the middle of its answer: {cause}", self.name()))
    }

    fn not_reached(&self, error: &reqwest::Error) -> CallError {
        let cause = self.server.masker.mask(&describe(error));
        if error.is_connect() || error.is_builder() {
            CallError::NotSent(format!("{} cannot be reached: {cause}", self.name()))
        } else {
            CallError::StreamEnded(format!("{} broke off before it answered: {cause}", self.name()))
        }
    }
}
