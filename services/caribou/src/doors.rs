//! The sockets that a replica is reached by: REST always, gRPC when it is asked for, both with or without TLS.
//!
//! Owns what is printed of them and that both are opened before anything is said, and closed together.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use caribou_grpc::GrpcOptions;
use caribou_runtime::Runtime;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::settings::{Auth, Settings};
use crate::tls::Followed;

/// Listening sockets that nobody is served on yet.
pub(crate) struct Doors {
    rest: TcpListener,
    grpc: Option<TcpListener>,
    tls: Option<Followed>,
}

/// Where a replica listens.
pub(crate) struct Addresses {
    /// As a URL, such as `http://127.0.0.1:8750`.
    pub(crate) rest: String,
    /// The same of gRPC, with the scheme `grpc` or `grpcs`.
    pub(crate) grpc: Option<String>,
}

impl Doors {
    /// Opens what the settings name.
    ///
    /// # Errors
    /// When other machines could reach an address and callers are not told apart; when it cannot be bound; when a file
    /// of `tls` cannot be used.
    pub(crate) async fn open(settings: &Settings) -> anyhow::Result<Self> {
        let tls = Followed::begin(&settings.tls)?;
        let rest = listen(settings.listen, &settings.auth).await?;
        let grpc = match settings.grpc.listen {
            Some(address) => Some(listen(address, &settings.auth).await.context("grpc.listen")?),
            None => None,
        };
        Ok(Self { rest, grpc, tls })
    }

    /// REST alone, without TLS.
    pub(crate) fn only(rest: TcpListener) -> Self {
        Self { rest, grpc: None, tls: None }
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
        })
    }

    /// Serves until `stop`, then lets calls in flight finish for at most `drain`.
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
        let Self { rest, grpc, tls } = self;
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

/// Listens where it is allowed to.
///
/// # Errors
/// When other machines could reach the address and callers are not told apart, or it cannot be bound.
pub(crate) async fn listen(address: SocketAddr, auth: &Auth) -> anyhow::Result<TcpListener> {
    auth.may_listen(address)?;
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}
