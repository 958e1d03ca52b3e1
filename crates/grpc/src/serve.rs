//! Accepts connections and ends them: the listening socket's whole life.
//!
//! Every socket is set to `TCP_NODELAY`: without it a small answer waits for the peer's delayed acknowledgement, 40 ms
//! each. Connections and their streams are bounded in number, a silent one in time (B1). After the stop signal nothing
//! new is accepted, calls in flight get until the deadline, and what is still open then is cut.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use caribou_runtime::Runtime;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::envelope::{Answers, envelope};
use crate::options::GrpcOptions;
use crate::server::routes;
use crate::signs_of_life::SignsOfLife;

/// How connections are encrypted: the value of the moment holds for each new one.
pub type ServerConfigs = watch::Receiver<Arc<rustls::ServerConfig>>;

/// Connections at once: each carries many calls. Further ones wait in the kernel's backlog.
const MAX_CONNECTIONS: usize = 1_024;

/// Calls at once on one connection; a caller with more waits, or opens another.
const MAX_STREAMS: u32 = 256;

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long a connection may take to make its first request.
const FIRST_REQUEST: Duration = Duration::from_secs(75);

/// How often an open connection of a caller is asked for a sign of life: below the minute after which common load
/// balancers and NATs forget an idle flow.
const SIGNS_OF_LIFE: SignsOfLife = SignsOfLife { every: Duration::from_secs(30), within: Duration::from_secs(20) };

/// The pause after a failed accept, such as for want of file descriptors: only time or a closed connection mends it.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves the verbs of `runtime` on `listener` until `shutdown` resolves, then lets calls in flight finish for at most
/// `drain`.
///
/// Dropping the future cuts every connection at once.
///
/// # Errors
/// The socket is not a listening one. Failures of single connections are logged and end only those.
pub async fn serve(
    listener: TcpListener,
    tls: Option<ServerConfigs>,
    runtime: Runtime,
    options: GrpcOptions,
    shutdown: impl Future<Output = ()>,
    drain: Duration,
) -> io::Result<()> {
    let (patience, signs_of_life) = (options.message_timeout, SIGNS_OF_LIFE);
    let door = Door { tls, patience, signs_of_life, max_streams: MAX_STREAMS, is_public: true };
    serve_by(listener, door, |stopped| routes(runtime, &options, stopped), shutdown, drain).await
}

/// How whoever comes by a listener is treated.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) tls: Option<ServerConfigs>,
    /// How long a message may take to arrive.
    pub(crate) patience: Duration,
    pub(crate) signs_of_life: SignsOfLife,
    /// Calls at once on one connection.
    pub(crate) max_streams: u32,
    /// Whether callers come by it, whose requests are named and whose answers are dated.
    pub(crate) is_public: bool,
}

/// Serves these services, which are told when the end begins.
///
/// # Errors
/// As [`serve`].
pub(crate) async fn serve_by<S: Answers>(
    listener: TcpListener,
    door: Door,
    services: impl FnOnce(watch::Receiver<()>) -> S,
    shutdown: impl Future<Output = ()>,
    drain: Duration,
) -> io::Result<()> {
    let (stop, stopped) = watch::channel(());
    let desk = Desk { services: services(stopped.clone()), door, stopped };
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => {}
            accepted = accept(&listener), if connections.len() < MAX_CONNECTIONS => {
                connections.spawn(desk.clone().greet(accepted?));
            }
        }
    }
    drop((listener, stop, desk));
    let finish = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(drain, finish).await.is_err() {
        tracing::info!(connections = connections.len(), "cutting gRPC connections that outlived the drain time");
        connections.shutdown().await;
    }
    Ok(())
}

/// The next connection, whatever fails in between.
async fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return Ok(stream),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// What every connection is served with.
#[derive(Clone)]
struct Desk<S> {
    services: S,
    door: Door,
    /// Closes when the replica stops.
    stopped: watch::Receiver<()>,
}

impl<S: Answers> Desk<S> {
    /// Sets the connection up and answers its requests.
    async fn greet(self, stream: TcpStream) {
        let ready = stream.set_nodelay(true).and_then(|()| self.door.signs_of_life.bound(&stream));
        if let Err(error) = ready {
            tracing::debug!(%error, "a connection was gone before its first request");
            return;
        }
        let Some(config) = self.door.tls.as_ref().map(|configs| configs.borrow().clone()) else {
            return self.converse(stream).await;
        };
        match tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await {
            Ok(Ok(stream)) => self.converse(stream).await,
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        }
    }

    async fn converse(mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let asked = Arc::new(Notify::new());
        let (services, first) = (self.services, asked.clone());
        let manner = (self.door.patience, self.door.is_public);
        let service = service_fn(move |request| {
            first.notify_one();
            envelope(services.clone(), manner, request)
        });
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(self.door.signs_of_life.every)
            .keep_alive_timeout(self.door.signs_of_life.within)
            .max_concurrent_streams(self.door.max_streams)
            .auto_date_header(self.door.is_public)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = &mut connection => ended,
            _ = self.stopped.changed() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            () = silent(&asked) => {
                tracing::debug!("a connection made no request");
                return;
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

/// Resolves when nothing was asked for too long; never once something was.
async fn silent(asked: &Notify) {
    if tokio::time::timeout(FIRST_REQUEST, asked.notified()).await.is_ok() {
        std::future::pending::<()>().await;
    }
}
