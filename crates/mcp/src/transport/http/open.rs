//! Opening a session with a remote server, and finding out what it speaks (mcp.md §3.2).
//!
//! Owns the order of the questions: `server/discover` in the modern form; an answer that only a modern server gives
//! settles it; anything else leads to `initialize` on the same URL, and a refusal of that to HTTP+SSE. A refused
//! credential ends the search and teaches nothing about the era; neither does a server in trouble. Dropping the future
//! undoes what was opened.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::{Remote, Secret};
use caribou_core::era::{Era, LATEST_LEGACY_VERSION, MODERN_VERSION, Protocol};
use caribou_ports::mcp::{CallError, OpenError, SessionFacts};
use http::StatusCode;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::channel::HttpChannel;
use super::link::Link;
use super::mirrors::Mirrors;
use super::refusal::{Failure, Refused};
use super::remotes::Remotes;
use crate::channel::{Opened, Opening};
use crate::era::Greeting;
use crate::era::handshake::{INITIALIZE, ShakeError, shake_hands};
use crate::era::memory::Belief;
use crate::era::stateless::{self, Announced, DISCOVER};
use crate::error;
use crate::transport::http_sse;
use crate::wire::errors::VERSION_UNSUPPORTED;
use crate::wire::meta::{self, Meta};
use crate::wire::versions;

/// One server being opened.
struct Search<'s> {
    opening: &'s Opening,
    link: Arc<Link>,
    mirrors: Arc<Mirrors>,
}

/// What the modern question came to.
enum Verdict {
    /// The server is modern.
    Modern(Arc<HttpChannel>, Greeting),
    /// It is not; offer this revision first.
    Legacy(Option<&'static str>),
    /// It is in trouble, which says nothing.
    Unknown,
    /// It said nothing for so long that it is taken for legacy.
    Silent,
}

/// Opens a session with the server at `remote`.
///
/// # Errors
/// It cannot be reached, refuses the credential, or speaks nothing that we do; the message names it.
pub(crate) async fn open(remotes: &Remotes, remote: &Remote, opening: &Opening) -> Result<Opened, OpenError> {
    let server = &opening.server;
    let link = Arc::new(Link::new(remotes.client_for(server), Arc::clone(server), remote, &opening.credentials)?);
    let search = Search { opening, link, mirrors: remotes.mirrors(&server.name, remote) };
    if let (Some(kept), Protocol::Legacy | Protocol::Auto) = (&opening.resume, server.protocol)
        && let Some(opened) = search.resumed(kept).await
    {
        return Ok(opened);
    }
    match server.protocol {
        Protocol::Legacy => search.legacy(None).await.map_err(|miss| miss.error),
        Protocol::Modern => search.modern().await,
        Protocol::Auto => match opening.eras.recall(server) {
            Some(Belief { era: Era::Legacy, version }) => search.remembered_legacy(version).await,
            Some(Belief { era: Era::Modern, .. }) | None => search.probe().await,
        },
    }
}

/// Why a server was not opened in the legacy era.
struct Miss {
    error: OpenError,
    /// The answer says that it is modern.
    is_modern: bool,
}

impl Search<'_> {
    async fn probe(&self) -> Result<Opened, OpenError> {
        let (opened, is_sure) = match self.discover(self.opening.era_probe).await? {
            Verdict::Modern(channel, greeting) => (Ok(self.opened(channel, greeting)), true),
            Verdict::Legacy(version) => (self.legacy(version).await, true),
            Verdict::Unknown => (self.legacy(None).await, false),
            Verdict::Silent => (self.legacy_unless_slow().await, true),
        };
        let opened = opened.map_err(|miss| miss.error)?;
        if is_sure {
            let SessionFacts { era, version, .. } = &opened.facts;
            self.opening.eras.learn(&self.opening.server, *era, Some(version));
        }
        Ok(opened)
    }

    /// A server that did not answer the modern question. It may only have been slow: a modern one refuses `initialize`.
    async fn legacy_unless_slow(&self) -> Result<Opened, Miss> {
        let missed = match self.legacy(None).await {
            Err(missed) if missed.is_modern => missed,
            opened => return opened,
        };
        match self.discover(Duration::MAX).await {
            Ok(Verdict::Modern(channel, greeting)) => Ok(self.opened(channel, greeting)),
            _ => Err(missed),
        }
    }

    /// A server that is said to be modern: no other era is tried.
    async fn modern(&self) -> Result<Opened, OpenError> {
        match self.discover(Duration::MAX).await? {
            Verdict::Modern(channel, greeting) => Ok(self.opened(channel, greeting)),
            Verdict::Legacy(_) | Verdict::Unknown | Verdict::Silent => Err(OpenError::Protocol(format!(
                "{} is set to `protocol: modern` but does not speak revision {MODERN_VERSION}",
                self.link.name()
            ))),
        }
    }

    /// A server that spoke the legacy era last; if it turns out modern, or refuses the revision that it spoke then, the
    /// belief is dropped and it is probed.
    async fn remembered_legacy(&self, version: Option<&'static str>) -> Result<Opened, OpenError> {
        match self.legacy(version).await {
            Err(Miss { is_modern, error })
                if is_modern || (version.is_some() && matches!(error, OpenError::Protocol(_))) =>
            {
                self.opening.eras.forget(&self.opening.server);
                self.probe().await
            }
            opened => opened.map_err(|miss| miss.error),
        }
    }

    /// Asks the modern question; silence beyond `patience` is an answer too.
    async fn discover(&self, patience: Duration) -> Result<Verdict, OpenError> {
        self.opening.awaited.now("its answer to `server/discover`");
        let channel = Arc::new(self.channel(Era::Modern));
        let protocol = stateless::protocol_meta(&self.opening.server);
        let params = meta::params(&[], Meta { protocol: &protocol, ..Meta::default() })
            .map_err(|error| self.failed(DISCOVER, error))?;
        let asked = async {
            match channel.probe(DISCOVER, &params).await {
                Err(failure) if failure.rpc().is_some_and(versions::refuses_what_it_lists) => {
                    channel.probe(DISCOVER, &params).await
                }
                answer => answer,
            }
        };
        let Ok(answer) = timeout(patience, asked).await else {
            return Ok(Verdict::Silent);
        };
        match answer {
            Ok(result) => self.judge_result(channel, &result),
            Err(failure) => self.judge_failure(channel, failure),
        }
    }

    fn judge_result(&self, channel: Arc<HttpChannel>, result: &RawValue) -> Result<Verdict, OpenError> {
        match (stateless::greeting(result), versions::of_discover_result(result)) {
            (Some(greeting), _) => Ok(Verdict::Modern(channel, greeting)),
            (None, Some(supported)) => self.common(&supported),
            (None, None) => Ok(Verdict::Legacy(None)),
        }
    }

    fn judge_failure(&self, channel: Arc<HttpChannel>, failure: Failure) -> Result<Verdict, OpenError> {
        let is_modern = match &failure {
            Failure::Refused(refused) => refused.tells_modern(),
            Failure::Call(error) => versions::tells_modern(error),
        };
        let code = failure.rpc_code();
        let in_trouble = failure.status().is_some_and(|status| status.is_server_error());
        match failure.into_call_error(&self.link.name(), DISCOVER) {
            error if is_modern && code == Some(VERSION_UNSUPPORTED) => self.common(&versions::listed_in(&error)),
            // It refuses the question, not the revision: modern, with nothing to say of itself.
            _ if is_modern => Ok(Verdict::Modern(
                channel,
                Greeting {
                    era: Era::Modern,
                    version: MODERN_VERSION.to_owned(),
                    server_info: None,
                    capabilities: None,
                },
            )),
            error @ (CallError::NotSent(_) | CallError::Denied(_)) => Err(self.failed(DISCOVER, error)),
            _ if in_trouble => Ok(Verdict::Unknown),
            _ => Ok(Verdict::Legacy(None)),
        }
    }

    /// The way on with a server that lists its revisions, none of them our modern one.
    fn common(&self, supported: &[String]) -> Result<Verdict, OpenError> {
        match versions::newest_legacy_of(supported) {
            Some(version) => Ok(Verdict::Legacy(Some(version))),
            None => Err(OpenError::Protocol(versions::nothing_common(&self.link.name(), supported))),
        }
    }

    /// Opens with `initialize`, offering `version` first.
    async fn legacy(&self, version: Option<&'static str>) -> Result<Opened, Miss> {
        self.opening.awaited.now("its answer to `initialize`");
        let channel = Arc::new(self.channel(Era::Legacy));
        let mut shaken = shake_hands(channel.as_ref(), &self.opening.server, version).await;
        let mut refusal = channel.take_refusal();
        let offered = version.unwrap_or(LATEST_LEGACY_VERSION);
        if let Some(other) = refusal.as_ref().and_then(|refused| refused.names_instead_of(offered)) {
            shaken = shake_hands(channel.as_ref(), &self.opening.server, Some(other)).await;
            refusal = channel.take_refusal();
        }
        match (shaken, refusal) {
            (Ok(greeting), _) => Ok(self.opened(channel, greeting)),
            (Err(error), Some(refused)) => self.refused(error, &refused).await,
            (Err(error), None) => Err(Miss { error: self.shake_failed(error), is_modern: false }),
        }
    }

    /// What is left to try after `initialize` was refused: HTTP+SSE, where the refusal allows for it.
    async fn refused(&self, error: ShakeError, refused: &Refused) -> Result<Opened, Miss> {
        let is_modern = refused.tells_modern();
        let tries_sse =
            matches!(refused.status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
        let error = match self.shake_failed(error) {
            OpenError::Protocol(why) if refused.status.is_server_error() => OpenError::Unreachable(why),
            error => error,
        };
        if is_modern || !tries_sse {
            return Err(Miss { error, is_modern });
        }
        let sse = timeout(self.opening.era_probe, http_sse::open_over(Arc::clone(&self.link), self.opening));
        let why = match sse.await {
            Ok(Ok(opened)) => return Ok(opened),
            Ok(Err(why)) => why.to_string(),
            Err(_) => "its event stream brings no `endpoint` event".to_owned(),
        };
        Err(Miss { error: OpenError::Protocol(format!("{error}; nor does it speak HTTP+SSE: {why}")), is_modern })
    }

    fn channel(&self, era: Era) -> HttpChannel {
        HttpChannel::new(Arc::clone(&self.link), self.opening, era, Arc::clone(&self.mirrors))
    }

    /// The session that somebody else held before, if the server still keeps it.
    async fn resumed(&self, kept: &Secret) -> Option<Opened> {
        self.opening.awaited.now("its answer in a session that it may still keep");
        let channel = Arc::new(self.channel(Era::Legacy));
        let greeting = channel.resume(kept).await?;
        Some(Opened { is_resumed: true, ..self.opened(channel, greeting) })
    }

    fn opened(&self, channel: Arc<HttpChannel>, greeting: Greeting) -> Opened {
        let announced = Announced::of(greeting.capabilities.as_deref());
        if self.opening.watch_lists && announced.any() {
            channel.watch_lists(announced);
        }
        let stateful = channel.has_session();
        Opened { facts: facts(greeting, stateful), channel, is_resumed: false }
    }

    fn shake_failed(&self, error: ShakeError) -> OpenError {
        shake_failed(self.opening.server.name.as_str(), error)
    }

    fn failed(&self, asked: &str, error: CallError) -> OpenError {
        failed(self.opening.server.name.as_str(), asked, error)
    }
}

/// The error of a bring-up whose handshake failed.
pub(crate) fn shake_failed(server: &str, error: ShakeError) -> OpenError {
    match error {
        ShakeError::Refused(error) => failed(server, INITIALIZE, error),
        ShakeError::Unusable(error) => error,
    }
}

/// The error of a bring-up whose request `asked` failed. Messages of ours name the server already.
fn failed(server: &str, asked: &str, error: CallError) -> OpenError {
    match error {
        CallError::StreamEnded(why) => OpenError::Unreachable(why),
        CallError::Malformed(why) => OpenError::Protocol(why),
        error => error::opening(server, asked, error),
    }
}

/// What a greeting tells of a remote session.
pub(crate) fn facts(greeting: Greeting, stateful: bool) -> SessionFacts {
    SessionFacts {
        era: greeting.era,
        version: greeting.version,
        stateful,
        pid: None,
        server_info: greeting.server_info,
        capabilities: greeting.capabilities,
    }
}
