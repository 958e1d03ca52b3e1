//! The sockets that a replica is reached by: REST always, gRPC and that for other replicas when they are asked for, all
//! with or without TLS.
//!
//! Owns what is printed of them and that all are opened before anything is said. Those of callers are closed together;
//! that for other replicas outlives them, since they ask for what is still here until it is handed over.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use caribou_grpc::GrpcOptions;
use caribou_runtime::Runtime;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::cluster::{PeerSocket, PeerStanding};
use crate::settings::{Auth, Settings};
use crate::tls::Followed;

/// Listening sockets that nobody is served on yet.
pub(crate) struct Doors {
    rest: TcpListener,
    grpc: Option<TcpListener>,
    tls: Option<Followed>,
    peers: Option<PeerSocket>,
}

/// Where a replica listens.
pub(crate) struct Addresses {
    /// As a URL, such as `http://127.0.0.1:8750`.
    pub(crate) rest: String,
    /// The same of gRPC, with the scheme `grpc` or `grpcs`.
    pub(crate) grpc: Option<String>,
    /// The same of the socket for other replicas, with the scheme `peer` or `peers`.
    pub(crate) peers: Option<String>,
}

impl Doors {
    /// Opens what the settings name.
    ///
    /// # Errors
    /// When other machines could reach an address and callers are not told apart; when it cannot be bound; when a file
    /// of `tls` or `cluster.tls` cannot be used; when sessions cannot be shared.
    pub(crate) async fn open(settings: &Settings) -> anyhow::Result<Self> {
        let tls = Followed::begin(&settings.tls)?;
        let rest = listen(settings.listen, &settings.auth).await?;
        let grpc = match settings.grpc.listen {
            Some(address) => Some(listen(address, &settings.auth).await.context("grpc.listen")?),
            None => None,
        };
        let peers = PeerSocket::open(settings).await?;
        Ok(Self { rest, grpc, tls, peers })
    }

    /// REST alone, without TLS.
    pub(crate) fn only(rest: TcpListener) -> Self {
        Self { rest, grpc: None, tls: None, peers: None }
    }

    /// Where they are.
    ///
    /// # Errors
    /// A socket is gone.
    pub(crate) fn addresses(&self) -> std::io::Result<Addresses> {
        let s = if self.tls.is_some() { "s" } else { "" };
        let grpc = self.grpc.as_ref().map(TcpListener::local_addr).transpose()?;
        Ok(Addresses {
            rest: format!("http{s}://{}", self.rest.local_addr()?),
            grpc: grpc.map(|address| format!("grpc{s}://{address}")),
            peers: self.peers.as_ref().map(peer_url).transpose()?,
        })
    }

    /// Where other replicas reach this one, and what it shows them; `None` = it is alone.
    pub(crate) fn peers(&self) -> Option<&PeerStanding> {
        self.peers.as_ref().map(|peers| &peers.standing)
    }

    /// Lets other replicas in, until `gone`. To be called once.
    pub(crate) fn let_peers_in(&mut self, runtime: &Runtime, gone: &CancellationToken) {
        if let Some(peers) = self.peers.take() {
            peers.serve(runtime.clone(), gone.clone());
        }
    }

    /// Serves callers until `stop`, then lets calls in flight finish for at most `drain`.
    ///
    /// # Errors
    /// A listener fails; the other one is closed with it.
    pub(crate) async fn serve(
        self,
        router: Router,
        runtime: Runtime,
        options: GrpcOptions,
        stop: CancellationToken,
        drain: Duration,
    ) -> std::io::Result<()> {
        let Self { rest, grpc, tls, .. } = self;
        let (rest_tls, grpc_tls) = tls.map(|tls| (tls.rest, tls.grpc)).unzip();
        let rest = caribou_rest::serve(rest, rest_tls, router, stop.clone().cancelled_owned(), drain);
        let grpc = async {
            match grpc {
                Some(grpc) => {
                    caribou_grpc::serve(grpc, grpc_tls, runtime, options, stop.cancelled_owned(), drain).await
                }
                None => Ok(()),
            }
        };
        tokio::try_join!(rest, grpc).map(|_| ())
    }
}

fn peer_url(peers: &PeerSocket) -> std::io::Result<String> {
    let scheme = if peers.is_encrypted() { "peers" } else { "peer" };
    Ok(format!("{scheme}://{}", peers.address()?))
}

/// Listens where it is allowed to.
///
/// # Errors
/// When other machines could reach the address and callers are not told apart, or it cannot be bound.
pub(crate) async fn listen(address: SocketAddr, auth: &Auth) -> anyhow::Result<TcpListener> {
    auth.may_listen(address)?;
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}
