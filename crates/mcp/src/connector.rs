//! Opens sessions with upstream servers, whatever their transport.
//!
//! Owns the bound of a bring-up and the choice of transport. A server with `oauth` is refused before any traffic when
//! nobody hands its access tokens in (fail closed). An error is returned only when everything half-made is gone.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds::{CHILD_GRACE, ERA_PROBE, MAX_MESSAGE_BYTES};
use caribou_core::config::Transport;
use caribou_core::ids::BootId;
use caribou_core::network::AllowedNetworks;
use caribou_egress::WayOut;
use caribou_ports::BoxFuture;
use caribou_ports::guard::ChildHost;
use caribou_ports::mcp::{Connector, OpenError, OpenSession, Session};

use crate::channel::{Awaited, Opened, Opening, Stop};
use crate::era::memory::EraMemory;
use crate::error::UpstreamsError;
use crate::server_asks::ServerAsks;
use crate::session::ChannelSession;
use crate::transport::http::Remotes;
use crate::transport::stdio::{self, Launcher};
use crate::transport::{http, http_sse};
use crate::wire::limits::ENVELOPE_BYTES;

/// Settings of all upstream connections.
#[derive(Clone, Debug)]
pub struct UpstreamOptions {
    /// Names of our environment that children see beside the safe ones; the setting `stdio.inherit_env`.
    pub inherit_env: Vec<String>,
    /// How long a child may take to leave after its stdin was closed, and again after SIGTERM.
    pub child_grace: Duration,
    /// How long a server may take to answer the probe for its era before it counts as legacy.
    pub era_probe: Duration,
    /// Bound of one message of a server that sets none of its own.
    pub max_message_bytes: usize,
    /// What personal connections reach beside the public internet; the setting `network.allow_cidrs`.
    pub allowed_networks: AllowedNetworks,
    /// How requests to servers leave; the settings `network.ca_file` and `network.proxy`.
    pub way_out: WayOut,
    /// This life of this replica, set as `CARIBOU_BOOT` in the environment of every child.
    pub boot: BootId,
}

impl UpstreamOptions {
    /// The defaults of `core/bounds`.
    pub fn new(boot: BootId) -> Self {
        Self {
            inherit_env: Vec::new(),
            child_grace: CHILD_GRACE,
            era_probe: ERA_PROBE,
            max_message_bytes: MAX_MESSAGE_BYTES,
            allowed_networks: AllowedNetworks::default(),
            way_out: WayOut::default(),
            boot,
        }
    }
}

/// All upstream servers.
pub struct Upstreams {
    launcher: Launcher,
    remotes: Arc<Remotes>,
    eras: Arc<EraMemory>,
    era_probe: Duration,
    max_message_bytes: usize,
}

impl Upstreams {
    /// Upstream servers whose children are started by `host`.
    ///
    /// # Errors
    /// The HTTP client cannot be set up.
    pub fn new(options: UpstreamOptions, host: Arc<dyn ChildHost>) -> Result<Arc<Self>, UpstreamsError> {
        let UpstreamOptions { inherit_env, child_grace, era_probe, max_message_bytes, allowed_networks, way_out, boot } =
            options;
        // The HTTP client panics without a provider; an error means that the program has installed one itself.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let remotes = Remotes::new(allowed_networks, &way_out).map_err(UpstreamsError::HttpClient)?;
        let launcher = Launcher { host, inherit_env: inherit_env.into(), grace: child_grace, boot };
        Ok(Arc::new(Self { launcher, remotes, eras: Arc::default(), era_probe, max_message_bytes }))
    }

    /// The shared part of a bring-up, and the largest result the session lets through.
    fn opening(&self, request: &OpenSession) -> (Opening, usize) {
        let server = Arc::clone(&request.server);
        let max_result_bytes = server.max_tool_result_bytes.unwrap_or(self.max_message_bytes);
        // A probe that nobody answers must leave the handshake its share of the bound.
        let patience = request.timeout.map_or(self.era_probe, |bound| self.era_probe.min(bound / 3));
        let opening = Opening {
            asks: Arc::new(ServerAsks::new(&server, Arc::clone(&request.events))),
            server,
            label: request.label.clone(),
            credentials: request.credentials.clone(),
            folder: request.folder.clone(),
            watch_lists: request.watch_lists,
            resume: request.resume.clone(),
            eras: Arc::clone(&self.eras),
            era_probe: patience,
            max_message_bytes: self.max_message_bytes.max(max_result_bytes).saturating_add(ENVELOPE_BYTES),
            awaited: Arc::new(Awaited::default()),
        };
        (opening, max_result_bytes)
    }
}

impl Connector for Upstreams {
    fn open(&self, request: OpenSession) -> BoxFuture<'static, Result<Arc<dyn Session>, OpenError>> {
        let (opening, max_result_bytes) = self.opening(&request);
        let (launcher, remotes) = (self.launcher.clone(), Arc::clone(&self.remotes));
        Box::pin(async move {
            refuse_without_tokens(&opening)?;
            let opened = open(&launcher, &remotes, &opening, request).await?;
            Ok(Arc::new(ChannelSession::new(opened, &opening, max_result_bytes)) as Arc<dyn Session>)
        })
    }
}

async fn open(
    launcher: &Launcher,
    remotes: &Remotes,
    opening: &Opening,
    request: OpenSession,
) -> Result<Opened, OpenError> {
    let mut stop = pin!(stop(request.timeout, request.abandoned));
    match &opening.server.transport {
        Transport::Stdio(stdio) => stdio::open(launcher, stdio, opening, stop.as_mut()).await,
        Transport::Http(remote) => connect(http::open(remotes, remote, opening), opening, stop).await,
        Transport::Sse(remote) => connect(http_sse::open(remotes, remote, opening), opening, stop).await,
    }
}

/// Connects to a remote server, until `stop` says otherwise: giving up closes what was opened.
async fn connect(
    connecting: impl Future<Output = Result<Opened, OpenError>>,
    opening: &Opening,
    stop: impl Future<Output = Stop>,
) -> Result<Opened, OpenError> {
    opening.awaited.now("a connection");
    tokio::select! {
        opened = connecting => opened,
        stop = stop => Err(stop.into_open_error(opening, "")),
    }
}

/// Resolves when the bring-up must not go on.
async fn stop(bound: Option<Duration>, abandoned: BoxFuture<'static, ()>) -> Stop {
    let timed_out = async {
        match bound {
            Some(bound) => {
                tokio::time::sleep(bound).await;
                bound
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = abandoned => Stop::Abandoned,
        bound = timed_out => Stop::TimedOut(bound),
    }
}

/// A server that wants access tokens is not asked without any, save to list its tools (contract 7.4).
fn refuse_without_tokens(opening: &Opening) -> Result<(), OpenError> {
    let Opening { server, credentials, .. } = opening;
    let is_wanted = server.oauth.as_ref().is_some_and(|oauth| oauth.enabled);
    if !is_wanted || credentials.tokens.is_some() || credentials.is_token_optional {
        return Ok(());
    }
    let name = server.shown_name();
    Err(OpenError::Denied(format!(
        "server `{name}` needs access tokens of its `oauth`, and nothing here asks for them"
    )))
}

#[cfg(test)]
mod tests {
    use caribou_core::config::{ClientAuthentication, OAuth, OAuthGrant, ServerConfig, UnknownOutcome};
    use caribou_ports::mcp::Credentials;

    use super::*;
    use crate::scripted::stdio_server;
    use crate::transport::process::DirectHost;

    fn request(server: ServerConfig, timeout: Option<Duration>) -> OpenSession {
        OpenSession {
            server: Arc::new(server),
            label: "fake/ann:t1".to_owned(),
            folder: None,
            timeout,
            abandoned: Box::pin(std::future::pending()),
            credentials: Credentials::default(),
            watch_lists: false,
            resume: None,
            events: Arc::new(|_| {}),
        }
    }

    fn upstreams() -> Arc<Upstreams> {
        Upstreams::new(UpstreamOptions::new(BootId::new("boot-1")), Arc::new(DirectHost)).expect("set up")
    }

    #[tokio::test]
    async fn a_server_with_oauth_is_refused_when_nobody_has_tokens_for_it() {
        let mut server = stdio_server(&["no-such-program"]);
        server.oauth = Some(OAuth {
            enabled: true,
            token_url: "http://127.0.0.1:1/token".to_owned(),
            grant: OAuthGrant::ClientCredentials,
            client_id: None,
            client_secret: None,
            refresh_token: None,
            scope: None,
            audience: None,
            token_field: "access_token".to_owned(),
            token_type_field: "token_type".to_owned(),
            expires_in_field: "expires_in".to_owned(),
            default_token_type: "Bearer".to_owned(),
            refresh_skew: Duration::from_secs(60),
            extra_token_params: Vec::new(),
            reuse_leeway: Duration::ZERO,
            unknown_outcome: UnknownOutcome::default(),
            authentication: ClientAuthentication::default(),
        });
        let refused = upstreams().open(request(server.clone(), None)).await.err().expect("refused");
        assert!(matches!(&refused, OpenError::Denied(why) if why.contains("oauth")), "{refused}");
        let optional = Credentials { is_token_optional: true, ..Credentials::default() };
        let asked = OpenSession { credentials: optional, ..request(server.clone(), None) };
        let refused = upstreams().open(asked).await.err().expect("not startable");
        assert!(matches!(refused, OpenError::NotStartable(_)), "{refused}");
        if let Some(oauth) = &mut server.oauth {
            oauth.enabled = false;
        }
        let refused = upstreams().open(request(server, None)).await.err().expect("not startable");
        assert!(matches!(refused, OpenError::NotStartable(_)), "{refused}");
    }

    #[test]
    fn a_probe_leaves_most_of_a_short_bound_to_the_handshake() {
        let patience = |timeout| upstreams().opening(&request(stdio_server(&["x"]), timeout)).0.era_probe;
        assert_eq!(patience(None), ERA_PROBE);
        assert_eq!(patience(Some(Duration::from_secs(60))), ERA_PROBE);
        assert_eq!(patience(Some(Duration::from_secs(3))), Duration::from_secs(1));
    }

    #[test]
    fn a_larger_result_bound_makes_room_for_larger_messages() {
        let mut server = stdio_server(&["x"]);
        server.max_tool_result_bytes = Some(MAX_MESSAGE_BYTES * 2);
        let (opening, max_result_bytes) = upstreams().opening(&request(server, None));
        assert_eq!(max_result_bytes, MAX_MESSAGE_BYTES * 2);
        assert!(opening.max_message_bytes > max_result_bytes);
    }
}
