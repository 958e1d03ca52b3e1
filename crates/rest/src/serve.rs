//! Accepts connections and ends them: the listening socket's whole life.
//!
//! Every socket is set to `TCP_NODELAY`: without it a small answer waits for the peer's delayed acknowledgement, 40 ms
//! each. Connections are encrypted when they are to be. They are bounded in number, a silent one in time (B1). After the stop signal nothing new is accepted,
//! requests in flight get until the deadline, and what is still open then (an event stream, say) is cut.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::unhurried::Unhurried;

/// How connections are encrypted: the value of the moment holds for each new one.
pub type ServerConfigs = watch::Receiver<Arc<rustls::ServerConfig>>;

/// Connections at once, twice the calls of a replica; further ones wait in the kernel's backlog.
const MAX_CONNECTIONS: usize = 2 * caribou_core::bounds::MAX_CALLS;

/// How long a connection may take to send a request's head, idle time between requests included. Longer than the 60 s
/// of common proxies, so that the proxy closes first and never sends a request into a closing connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(75);

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The pause after a failed accept, such as for want of file descriptors: only time or a closed connection mends it.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves `router` on `listener` until `shutdown` resolves, then lets requests in flight finish for at most `drain`.
///
/// Dropping the future cuts every connection at once.
///
/// # Errors
/// The socket is not a listening one. Failures of single connections are logged and end only those.
pub async fn serve(
    listener: TcpListener,
    tls: Option<ServerConfigs>,
    router: Router,
    shutdown: impl Future<Output = ()>,
    drain: Duration,
) -> io::Result<()> {
    let (stop, stopped) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => {}
            accepted = accept(&listener), if connections.len() < MAX_CONNECTIONS => {
                connections.spawn(greet(accepted?, tls.clone(), router.clone(), stopped.clone()));
            }
        }
    }
    drop((listener, stop));
    let finish = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(drain, finish).await.is_err() {
        tracing::info!(connections = connections.len(), "cutting connections that outlived the drain time");
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

/// Sets one connection up and answers its requests. `stopped` closes when the replica stops.
async fn greet(stream: TcpStream, tls: Option<ServerConfigs>, router: Router, stopped: watch::Receiver<()>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection was gone before its first request");
        return;
    }
    let Some(config) = tls.map(|configs| configs.borrow().clone()) else {
        return converse(stream, router, stopped).await;
    };
    match tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await {
        Ok(Ok(stream)) => converse(stream, router, stopped).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

/// Answers the requests of one connection.
async fn converse<S>(stream: S, router: Router, mut stopped: watch::Receiver<()>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let connection = pin!(connection);
    let mut connection = Unhurried::new(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        _ = stopped.changed() => {
            connection.inner().as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
