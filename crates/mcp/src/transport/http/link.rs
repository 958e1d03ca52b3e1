//! One server's end of HTTP: where requests go, what every one of them carries, and how redirects are followed.
//!
//! Owns the headers of configuration and session, laid over each other once (contract 8.1, 8.2), and the rule that none
//! of them crosses origins (architecture.md §9); `redirect` owns which redirect is followed, `refusal` what an answer
//! means, `bearer` the access token. A request that surely did not arrive fails as `NotSent`, one that may have arrived
//! as `StreamEnded`; none is sent twice (S2), unless it was refused for its token. Keeps O3.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use caribou_core::config::{Remote, Secret, ServerConfig};
use caribou_core::masker::Masker;
use caribou_egress::{Refused, refusal_in};
use caribou_ports::access_token::AccessToken;
use caribou_ports::mcp::{CallError, Credentials, OpenError};
use http::{HeaderMap, Method, header};
use url::Url;

use super::bearer::{Bearer, Sendable};
use super::client::{HttpClient, describe};
use crate::transport::redirect::{MAX_REDIRECTS, next_hop, same_origin, without_query};
use crate::wire::headers::{self, Configured};

/// The way to one server.
pub(crate) struct Link {
    client: HttpClient,
    server: Arc<ServerConfig>,
    /// The configured URL.
    url: Url,
    /// The configured headers with those of the session laid over.
    own: HeaderMap,
    /// The access tokens; `None` = the server has none, or the session brings its own `Authorization`.
    bearer: Option<Bearer>,
    /// Knows what must not appear in messages.
    masker: RwLock<Arc<Masker>>,
    /// What it knows beside the access token.
    lasting: Arc<Masker>,
    /// Which access token it knows.
    hidden: AtomicU64,
}

/// An answer, and the URL that gave it if that was not the one asked.
pub(crate) struct Reached {
    /// Status, headers and the body still to be read.
    pub(crate) response: reqwest::Response,
    /// Where redirects led.
    pub(crate) moved_to: Option<Url>,
}

impl Link {
    /// The way to `remote` for one session with these credentials; configured headers that the protocol owns are left
    /// out, with a warning.
    ///
    /// # Errors
    /// `NotStartable`: the URL or a header cannot be used. `Denied`: a header of the session cannot be sent. Names which,
    /// never a value.
    pub(crate) fn new(
        client: HttpClient,
        server: Arc<ServerConfig>,
        remote: &Remote,
        credentials: &Credentials,
    ) -> Result<Self, OpenError> {
        let refuse = |why: String| OpenError::NotStartable(format!("server `{}`: {why}", server.name));
        let configured = Configured::from_pairs(&remote.headers).map_err(refuse)?;
        if !configured.ignored.is_empty() {
            tracing::warn!(server = %server.name, headers = ?configured.ignored, "configured headers that the protocol owns are not sent");
        }
        // Building a request moves credentials written into the URL out of it, into a header.
        let request =
            client.client.get(&remote.url).build().map_err(|_| refuse("its `url` is no HTTP URL".to_owned()))?;
        if !matches!(request.url().scheme(), "http" | "https") {
            return Err(refuse("its `url` is neither http nor https".to_owned()));
        }
        let mut own = configured.headers;
        if let Some(credentials) = request.headers().get(header::AUTHORIZATION) {
            own.entry(header::AUTHORIZATION).or_insert_with(|| credentials.clone());
        }
        let url = request.url().clone();
        headers::lay_over(&mut own, &credentials.headers)
            .map_err(|why| OpenError::Denied(format!("server `{}`: {why}", server.shown_name())))?;
        let brings_its_own = credentials.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let tokens = credentials.tokens.clone().filter(|_| !brings_its_own);
        let lasting = Arc::new(server.masker.with(credentials.headers.iter().map(|(_, value)| value.expose())));
        Ok(Self {
            client,
            server,
            url,
            own,
            bearer: tokens.map(|tokens| Bearer::new(tokens, credentials.is_token_optional)),
            masker: RwLock::new(Arc::clone(&lasting)),
            lasting,
            hidden: AtomicU64::new(u64::MAX),
        })
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

    /// Lays the headers of one call over those of a request to `url`.
    ///
    /// # Errors
    /// `NotSent`: one cannot be sent; names it, never a value.
    pub(crate) fn add_call_headers(
        &self,
        headers: &mut HeaderMap,
        url: &Url,
        of_call: &[(String, Secret)],
    ) -> Result<(), CallError> {
        if of_call.is_empty() || !same_origin(url, &self.url) {
            return Ok(());
        }
        headers::lay_over(headers, of_call).map_err(|why| CallError::NotSent(format!("{}: {why}", self.name())))
    }

    /// Sends one request, with an access token if the server has any, following redirects as far as allowed, and waits
    /// for the head of the answer.
    ///
    /// # Errors
    /// `NotSent` or `StreamEnded`, by whether the request may have arrived; `Malformed` for a refused redirect; `Denied`
    /// where a personal connection may not go, or when no access token is accepted.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<Reached, CallError> {
        let request = Sendable { method, url, headers, body };
        match &self.bearer {
            // Boxed: most servers have no tokens, and their requests should not carry the state of this.
            Some(bearer) if self.takes_token(&request) => Box::pin(bearer.send(self, request)).await,
            _ => Ok(self.follow(request).await?.0),
        }
    }

    /// Whether the access token belongs on this request: at home, and unless the call itself says who it is.
    fn takes_token(&self, request: &Sendable<'_>) -> bool {
        let of_session = self.own.get(header::AUTHORIZATION);
        same_origin(request.url, &self.url) && request.headers.get(header::AUTHORIZATION) == of_session
    }

    /// Sends one request where it leads; whether it still had its credentials where it arrived.
    pub(super) async fn follow(&self, request: Sendable<'_>) -> Result<(Reached, bool), CallError> {
        let Sendable { method, url, mut headers, body } = request;
        let mut has_credentials = true;
        let mut moved_to: Option<Url> = None;
        for _ in 0..=MAX_REDIRECTS {
            let here = moved_to.as_ref().unwrap_or(url);
            self.client.check(here).map_err(|refused| self.guarded(refused))?;
            let mut request = reqwest::Request::new(method.clone(), here.clone());
            *request.headers_mut() = headers.clone();
            *request.body_mut() = body.clone().map(reqwest::Body::from);
            let response = self.client.client.execute(request).await.map_err(|error| self.not_reached(&error))?;
            let allowed = &self.server.allowed_redirect_origins;
            let Some(next) = next_hop(&method, here, response.status(), response.headers(), allowed)
                .map_err(|why| CallError::Malformed(format!("{}: {}", self.name(), self.masker().mask(&why))))?
            else {
                return Ok((Reached { response, moved_to }, has_credentials));
            };
            if !same_origin(&next, here) {
                headers = headers::of_protocol(&headers);
                has_credentials = false;
            }
            moved_to = Some(next);
        }
        Err(CallError::Malformed(format!("{} redirects more than {MAX_REDIRECTS} times", self.name())))
    }

    /// How the server is named in messages: its name and where it is, without keys in the path.
    pub(crate) fn name(&self) -> String {
        format!("server `{}` ({})", self.server.name, self.lasting.mask(&without_query(&self.url)))
    }

    /// What keeps the secrets of configuration, session and access token out of messages.
    pub(crate) fn masker(&self) -> Arc<Masker> {
        Arc::clone(&self.masker.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps this access token out of messages from now on; the one before it no longer opens anything.
    pub(super) fn hide(&self, token: &AccessToken) {
        if self.hidden.load(Ordering::Acquire) == token.serial {
            return;
        }
        let knowing = Arc::new(self.lasting.with([token.header.expose()]));
        *self.masker.write().unwrap_or_else(PoisonError::into_inner) = knowing;
        self.hidden.store(token.serial, Ordering::Release);
    }

    /// The error of an answer that broke off.
    pub(crate) fn broke_off(&self, error: &reqwest::Error) -> CallError {
        let cause = self.masker().mask(&describe(error));
        CallError::StreamEnded(format!("{} broke off in the middle of its answer: {cause}", self.name()))
    }

    fn guarded(&self, refused: Refused) -> CallError {
        CallError::Denied(format!("server `{}` is not asked: {refused}", self.server.shown_name()))
    }

    fn not_reached(&self, error: &reqwest::Error) -> CallError {
        if let Some(refused) = refusal_in(error) {
            return self.guarded(refused);
        }
        let cause = self.masker().mask(&describe(error));
        if error.is_connect() || error.is_builder() {
            CallError::NotSent(format!("{} cannot be reached: {cause}", self.name()))
        } else {
            CallError::StreamEnded(format!("{} broke off before it answered: {cause}", self.name()))
        }
    }
}
