//! One connection to one life of another replica.
//!
//! Made by hand rather than by tonic's channel, which connects again by itself: a request must know whether it may have
//! left (invariant S2), and a connection whose life it is.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use caribou_core::session::NotTaken;
use caribou_ports::peers::{PeerAddress, PeerError};
use caribou_proto::peer::v1;
use caribou_proto::peer::v1::session_service_client::SessionServiceClient;
use caribou_trace::TraceContext;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::body::Body;
use tower::Service;
use tracing::Span;

use super::options::PeerOptions;
use crate::peer::server::{LARGEST_MESSAGE, PROTOCOL};
use crate::peer::{Membership, status};

/// How often a connection is asked for a sign of life, and how long that may take: a cut cable is noticed within 8 s,
/// less than a lease (durability.md §6).
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
const SIGN_OF_LIFE_ANSWER: Duration = Duration::from_secs(3);

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
        let shaken = http2::Builder::new(Until(given_up.clone()))
            .timer(TokioTimer::new())
            .keep_alive_interval(SIGN_OF_LIFE)
            .keep_alive_timeout(SIGN_OF_LIFE_ANSWER)
            .keep_alive_while_idle(true)
            .handshake(TokioIo::new(stream));
        let (requests, connection) = shaken.await.map_err(|error| unreachable(peer, &error))?;
        let lost = CancellationToken::new();
        let (boot, given_up, told) = (peer.boot.clone(), given_up.clone(), lost.clone().drop_guard());
        tokio::spawn(async move {
            tokio::select! {
                over = connection => match over {
                    Ok(()) => tracing::debug!(peer = %boot, "a connection to another replica ended"),
                    Err(error) => tracing::debug!(peer = %boot, %error, "a connection to another replica was lost"),
                },
                () = given_up.cancelled() => {}
            }
            drop(told);
        });
        let sender = Sender { requests, membership: options.membership.clone() };
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

/// Runs the tasks of a connection until it is given up: the library would let requests in flight go on.
#[derive(Clone)]
struct Until(CancellationToken);

impl<F> Executor<F> for Until
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, task: F) {
        tokio::spawn(self.0.clone().run_until_cancelled_owned(task));
    }
}

/// Names the replica and what failed; errors of the system and of TLS hold no secret.
fn unreachable(peer: &PeerAddress, error: &dyn std::error::Error) -> PeerError {
    PeerError::Unreachable(format!("{} ({}): {error}", peer.boot, peer.address))
}

/// Sends requests of a member over one connection.
#[derive(Clone)]
pub(super) struct Sender {
    requests: SendRequest<Body>,
    membership: Membership,
}

impl Service<Request<Body>> for Sender {
    type Response = Response<Incoming>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Status>> + Send>>;

    /// Always: what cannot be sent is told when it is tried, by a status that says so.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        self.membership.show(request.headers_mut());
        if let Some(context) = TraceContext::within(&Span::current()) {
            context.put_into(request.headers_mut());
        }
        let sent = self.requests.try_send_request(request);
        Box::pin(async move {
            sent.await.map_err(|mut error| match error.take_message() {
                Some(_) => status::never_sent("the connection was closed before the request was sent"),
                None => Status::unavailable(error.into_error().to_string()),
            })
        })
    }
}
