//! The replica that a command talks to: one that runs already, or one inside this process.
//!
//! Both are asked by the same HTTP requests, the inner one without a socket, so a command shows the same either way.
//! Answers and waits are bounded (invariant B1).

use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Method, Request, Response, header};
use caribou_core::bounds;
use caribou_egress::{WayOut, WayOutOptions};
use serde::Deserialize;
use tower::ServiceExt as _;

use super::arguments::{SettingsArguments, Target, Token};
use super::output;
use super::usage::Usage;
use crate::assemble::{self, Replica};
use crate::followed;
use crate::settings::{Auth, ConfigOrigin, Log, Settings};
use crate::telemetry::Telemetry;
use crate::tls;

/// The largest answer a command reads: the tools of many servers, far above one message of one.
const MAX_ANSWER_BYTES: usize = 16 * bounds::MAX_MESSAGE_BYTES;

/// How long a replica may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// How much longer than the longest call an answer may take.
const MARGIN: Duration = Duration::from_secs(30);

/// Where requests go.
pub(super) enum Gateway {
    /// To a replica that runs.
    Remote {
        client: reqwest::Client,
        /// Its URL without the slash at the end.
        base: String,
        /// What it is to be shown.
        token: Option<Token>,
    },
    /// To the replica in this process.
    Local { router: Router, replica: Box<Replica>, telemetry: Telemetry },
}

/// One request.
struct Ask<'a> {
    method: Method,
    path: &'a str,
    body: Option<String>,
    accept: &'static str,
    /// Only while this tag names what is stored.
    tag: Option<&'a str>,
}

impl<'a> Ask<'a> {
    fn of(method: Method, path: &'a str) -> Self {
        Self { method, path, body: None, accept: "application/json", tag: None }
    }
}

/// What a failed request says about itself.
#[derive(Deserialize)]
struct Problem {
    detail: String,
    code: String,
}

impl Gateway {
    /// The replica that these arguments name.
    ///
    /// # Errors
    /// When the settings or the servers' configuration are wrong, or the replica cannot be started.
    pub(super) async fn open(target: &Target) -> anyhow::Result<Self> {
        match &target.server {
            Some(url) => Self::remote(url, target),
            None => Self::local(&target.settings).await,
        }
    }

    /// Opens the replica that these arguments name, asks it, and closes it again whatever came of it.
    ///
    /// # Errors
    /// As [`Gateway::open`], and those of `ask`.
    pub(super) async fn once<T>(
        target: &Target,
        ask: impl AsyncFnOnce(&Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let gateway = Self::open(target).await?;
        let answer = ask(&gateway).await;
        gateway.close().await;
        answer
    }

    fn remote(url: &reqwest::Url, target: &Target) -> anyhow::Result<Self> {
        if !matches!(url.scheme(), "http" | "https") {
            bail!(Usage("the address of a replica starts with http:// or https://"));
        }
        // What stands in a URL is printed in errors and kept in histories.
        if !url.username().is_empty() || url.password().is_some() {
            bail!(Usage("the address of a replica holds no user and no password"));
        }
        // A replica is on this machine or behind a tunnel: never behind the proxy that the environment names.
        let options = WayOutOptions {
            ca_pem: target
                .ca
                .as_deref()
                .map(|file| tls::read_authorities("--ca", file))
                .transpose()?
                .unwrap_or_default(),
            proxy: None,
        };
        let client = WayOut::new(&options, &|_| None)?
            .trust(reqwest::Client::builder())
            .connect_timeout(CONNECT)
            .timeout(bounds::CALL_MAX + MARGIN)
            .tcp_nodelay(true)
            .build()?;
        let token = target.token.clone();
        Ok(Self::Remote { client, base: url.as_str().trim_end_matches('/').to_owned(), token })
    }

    async fn local(arguments: &SettingsArguments) -> anyhow::Result<Self> {
        let settings = for_one_command(assemble::accept(arguments.load(None)?)?);
        let telemetry = Telemetry::start(&settings)?;
        // A file is followed without the database, which may be anywhere.
        let store = match settings.config.source {
            ConfigOrigin::Database => followed::store_of(&settings).await?,
            ConfigOrigin::File => None,
        };
        let servers = assemble::follow_servers(&settings, store.as_ref()).await?;
        let replica = Box::pin(Replica::start(&settings, servers, None, None, telemetry.boot.clone())).await?;
        Ok(Self::inside(replica, &settings, telemetry))
    }

    /// The replica in this process.
    pub(super) fn inside(replica: Replica, settings: &Settings, telemetry: Telemetry) -> Self {
        let router = replica.router(settings, telemetry.metrics.clone());
        Self::Local { router, replica: Box::new(replica), telemetry }
    }

    /// Asks for a document.
    ///
    /// # Errors
    /// When the replica cannot be reached, or refuses.
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Bytes> {
        whole(self.send(Ask::of(Method::GET, path)).await?).await
    }

    /// Asks for a document and for the tag that names this state of it, if there is one.
    ///
    /// # Errors
    /// When the replica cannot be reached, or refuses.
    pub(super) async fn get_tagged(&self, path: &str) -> anyhow::Result<(Bytes, Option<String>)> {
        let response = self.send(Ask::of(Method::GET, path)).await?;
        let tag = response.headers().get(header::ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        Ok((whole(response).await?, tag))
    }

    /// Sends a JSON body that changes a document, only while `tag` names its state.
    ///
    /// # Errors
    /// When the replica cannot be reached, or refuses.
    pub(super) async fn change(
        &self,
        method: Method,
        path: &str,
        body: String,
        tag: Option<&str>,
    ) -> anyhow::Result<Bytes> {
        whole(self.send(Ask { body: Some(body), tag, ..Ask::of(method, path) }).await?).await
    }

    /// Asks for something to be done that is named by the path alone.
    ///
    /// # Errors
    /// When the replica cannot be reached, or refuses.
    pub(super) async fn delete(&self, path: &str) -> anyhow::Result<Bytes> {
        whole(self.send(Ask::of(Method::DELETE, path)).await?).await
    }

    /// Sends a JSON body and reads the answer whole.
    ///
    /// # Errors
    /// When the replica cannot be reached, or refuses.
    pub(super) async fn post(&self, path: &str, body: String) -> anyhow::Result<Bytes> {
        whole(self.send(Ask { body: Some(body), ..Ask::of(Method::POST, path) }).await?).await
    }

    /// Sends a JSON body and hands the answer's stream over.
    ///
    /// # Errors
    /// When the replica cannot be reached, or refuses.
    pub(super) async fn post_streaming(&self, path: &str, body: String) -> anyhow::Result<Body> {
        let ask = Ask { body: Some(body), accept: "text/event-stream", ..Ask::of(Method::POST, path) };
        Ok(self.send(ask).await?.into_body())
    }

    /// Asks for a document that is told as a stream.
    ///
    /// # Errors
    /// When the replica cannot be reached, or refuses.
    pub(super) async fn get_streaming(&self, path: &str) -> anyhow::Result<Body> {
        let ask = Ask { accept: "text/event-stream", ..Ask::of(Method::GET, path) };
        Ok(self.send(ask).await?.into_body())
    }

    /// Closes everything that was started for this command. A replica that ran before goes on.
    pub(super) async fn close(self) {
        if let Self::Local { replica, telemetry, .. } = self {
            output::wait("closing the sessions", replica.stop()).await;
            telemetry.flush().await;
        }
    }

    async fn send(&self, ask: Ask<'_>) -> anyhow::Result<Response<Body>> {
        let base = match self {
            Self::Remote { base, .. } => base,
            Self::Local { .. } => "",
        };
        let mut request = Request::builder()
            .method(ask.method)
            .uri(format!("{base}{}", ask.path))
            .header(header::ACCEPT, ask.accept)
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(tag) = ask.tag {
            request = request.header(header::IF_MATCH, tag);
        }
        let mut request = request.body(ask.body.unwrap_or_default())?;
        let response = match self {
            Self::Remote { client, base, token } => {
                if let Some(Token(token)) = token {
                    let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose()))?;
                    bearer.set_sensitive(true);
                    request.headers_mut().insert(header::AUTHORIZATION, bearer);
                }
                let asked = client.execute(request.try_into()?).await.map_err(reqwest::Error::without_url);
                let response = asked.with_context(|| format!("no answer from a replica at {base}"))?;
                Response::<reqwest::Body>::from(response).map(Body::new)
            }
            Self::Local { router, .. } => router.clone().oneshot(request.map(Body::from)).await?,
        };
        accepted(response).await
    }
}

async fn accepted(response: Response<Body>) -> anyhow::Result<Response<Body>> {
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status();
    match serde_json::from_slice::<Problem>(&whole(response).await?) {
        Ok(problem) => Err(refused(&problem)),
        Err(_) => bail!("the answer is {status}, and not from Caribou"),
    }
}

/// A refusal as it came, from its JSON text.
pub(super) fn refusal(text: &str) -> anyhow::Error {
    match serde_json::from_str::<Problem>(text) {
        Ok(problem) => refused(&problem),
        Err(error) => error.into(),
    }
}

fn refused(problem: &Problem) -> anyhow::Error {
    anyhow::anyhow!("{} ({})", problem.detail, problem.code)
}

async fn whole(response: Response<Body>) -> anyhow::Result<Bytes> {
    axum::body::to_bytes(response.into_body(), MAX_ANSWER_BYTES).await.context("the answer broke off or is too large")
}

/// Settings of a replica that lives for one command: its log is only for what the answer does not tell, unless
/// something else was asked for, and a listing waits for every server, because there is no later.
fn for_one_command(mut settings: Settings) -> Settings {
    if settings.log == Log::default() {
        settings.log.level = "error".to_owned();
    }
    let patience = (bounds::SESSION_INIT + MARGIN).as_secs_f64();
    settings.calls.list_wait_seconds = settings.calls.list_wait_seconds.max(patience);
    settings.catalog.discover_at_start = false;
    // Whoever runs the command may do all that its process may.
    settings.auth = Auth::default();
    settings
}
