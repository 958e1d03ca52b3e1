//! One connection to one life of another replica.
//!
//! Made by hand rather than by tonic's channel, which connects again by itself: a request must know whether it may have
//! left (invariant S2), and a connection whose life it is.

use caribou_core::session::NotTaken;
use caribou_ports::peers::{PeerAddress, PeerError};
use caribou_proto::peer::v1;
use caribou_proto::peer::v1::session_service_client::SessionServiceClient;
use futures::future::OptionFuture;
use h2::{Ping, PingPong};
use http::Uri;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use super::options::PeerOptions;
use super::sender::Sender;
use crate::peer::server::{LARGEST_MESSAGE, PROTOCOL};
use crate::peer::{SIGNS_OF_LIFE, status};

/// Bytes under way at once to one request, and to all together.
const STREAM_WINDOW: u32 = 2 * 1024 * 1024;
const CONNECTION_WINDOW: u32 = 5 * 1024 * 1024;

/// The headers of one answer. A refusal fits.
const LARGEST_HEADERS: u32 = 16 * 1024;

/// A connection that is known to lead to the life that is meant.
#[derive(Clone)]
pub(super) struct Connection {
    client: SessionServiceClient<Sender>,
    lost: CancellationToken,
    /// The version of Caribou at the other end; empty until it was asked.
    version: String,
}

impl Connection {
    /// Connects and asks who is there. Given up when `given_up` is.
    ///
    /// # Errors
    /// Nobody answers, or somebody else does.
    pub(super) async fn open(
        peer: &PeerAddress,
        options: &PeerOptions,
        given_up: &CancellationToken,
    ) -> Result<Self, PeerError> {
        let stream = TcpStream::connect(&peer.address).await.map_err(|error| unreachable(peer, &error))?;
        stream.set_nodelay(true).map_err(|error| unreachable(peer, &error))?;
        SIGNS_OF_LIFE.bound(&stream).map_err(|error| unreachable(peer, &error))?;
        let mut connection = match &options.tls {
            None => Self::over(stream, peer, options, given_up).await?,
            Some(configs) => {
                let host = peer.address.rsplit_once(':').map_or(&*peer.address, |(host, _)| host);
                let host = options.certificate_name.as_deref().unwrap_or(host.trim_matches(['[', ']']));
                let name = ServerName::try_from(host.to_owned()).map_err(|error| unreachable(peer, &error))?;
                let connector = TlsConnector::from(configs.borrow().clone());
                let stream = connector.connect(name, stream).await.map_err(|error| unreachable(peer, &error))?;
                Self::over(stream, peer, options, given_up).await?
            }
        };
        connection.greet(peer, options).await?;
        Ok(connection)
    }

    async fn over(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: &PeerAddress,
        options: &PeerOptions,
        given_up: &CancellationToken,
    ) -> Result<Self, PeerError> {
        let origin = Uri::builder().scheme("http").authority(&*peer.address).path_and_query("/").build();
        let origin = origin.map_err(|error| unreachable(peer, &error))?;
        let shaken = h2::client::Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(LARGEST_HEADERS)
            .enable_push(false)
            .handshake(stream);
        let (requests, mut connection) = shaken.await.map_err(|error| unreachable(peer, &error))?;
        let lost = CancellationToken::new();
        let (boot, given_up, told) = (peer.boot.clone(), given_up.clone(), lost.clone().drop_guard());
        let silent = OptionFuture::from(connection.ping_pong().map(silence));
        tokio::spawn(async move {
            // Whatever the end, requests in flight end with the connection.
            tokio::select! {
                over = connection => match over {
                    Ok(()) => tracing::debug!(peer = %boot, "a connection to another replica ended"),
                    Err(error) => tracing::debug!(peer = %boot, %error, "a connection to another replica was lost"),
                },
                Some(()) = silent => tracing::debug!(peer = %boot, "another replica shows no sign of life"),
                () = given_up.cancelled() => {}
            }
            drop(told);
        });
        let sender = Sender::new(requests, options.membership.clone());
        let client = SessionServiceClient::with_origin(sender, origin)
            .max_decoding_message_size(LARGEST_MESSAGE)
            .max_encoding_message_size(LARGEST_MESSAGE);
        Ok(Self { client, lost, version: String::new() })
    }

    /// Addresses are used again, and versions differ while a cluster is renewed.
    async fn greet(&mut self, peer: &PeerAddress, options: &PeerOptions) -> Result<(), PeerError> {
        let hello = v1::HelloRequest {
            to_boot: peer.boot.to_string(),
            from_boot: options.boot.to_string(),
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let answer = self.client.hello(hello).await.map_err(|status| status::peer_error(&status))?.into_inner();
        if answer.boot != peer.boot.as_str() {
            return Err(NotTaken::WrongBoot.into());
        }
        if answer.protocol != PROTOCOL {
            let (theirs, version) = (answer.protocol, answer.version);
            let detail = format!("version {version} of Caribou speaks protocol {theirs}, this one {PROTOCOL}");
            return Err(PeerError::Unreachable(detail));
        }
        self.version = answer.version;
        Ok(())
    }

    /// To ask something with.
    pub(super) fn client(&self) -> SessionServiceClient<Sender> {
        self.client.clone()
    }

    /// The version of Caribou at the other end.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Something went wrong on it: whoever asks next gets another one. What is in flight on it goes on.
    pub(super) fn distrust(&self) {
        self.lost.cancel();
    }

    /// Whether it is over, or not to be used any more.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }
}

/// Resolves when the other end has shown no sign of life for too long.
async fn silence(mut pings: PingPong) {
    loop {
        tokio::time::sleep(SIGNS_OF_LIFE.every).await;
        let answered = tokio::time::timeout(SIGNS_OF_LIFE.within, pings.ping(Ping::opaque())).await;
        if !matches!(answered, Ok(Ok(_))) {
            return;
        }
    }
}

/// Names the replica and what failed; errors of the system and of TLS hold no secret.
fn unreachable(peer: &PeerAddress, error: &dyn std::error::Error) -> PeerError {
    PeerError::Unreachable(format!("{} ({}): {error}", peer.boot, peer.address))
}
