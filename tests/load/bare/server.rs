//! Who answers bare calls: what came, back again.

use anyhow::Context;
use caribou_proto::peer::v1;
use caribou_proto::peer::v1::session_service_server::{SessionService, SessionServiceServer};
use futures::stream::Empty;
use tokio::net::TcpListener;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

/// Says where it listens, and answers to the end of the process.
///
/// # Errors
/// It cannot listen.
pub(crate) fn serve() -> anyhow::Result<()> {
    super::callers::runtime()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("a socket on loopback")?;
        println!("LISTENING http://{}", listener.local_addr()?);
        let accepted = TcpListenerStream::new(listener).map(|stream| {
            let stream = stream?;
            stream.set_nodelay(true)?;
            Ok::<_, std::io::Error>(stream)
        });
        let server = Server::builder().add_service(SessionServiceServer::new(Echo));
        server.serve_with_incoming(accepted).await.context("serving bare calls")
    })
}

/// Knows one method.
struct Echo;

fn none() -> Status {
    Status::unimplemented("only bare calls are answered here")
}

#[tonic::async_trait]
impl SessionService for Echo {
    type ExchangeStream = Empty<Result<v1::Down, Status>>;

    async fn hello(&self, request: Request<v1::HelloRequest>) -> Result<Response<v1::HelloResponse>, Status> {
        let v1::HelloRequest { from_boot, protocol, version, .. } = request.into_inner();
        Ok(Response::new(v1::HelloResponse { boot: from_boot, protocol, version }))
    }

    async fn open(&self, _: Request<v1::OpenRequest>) -> Result<Response<v1::OpenResponse>, Status> {
        Err(none())
    }

    async fn exchange(&self, _: Request<Streaming<v1::Up>>) -> Result<Response<Self::ExchangeStream>, Status> {
        Err(none())
    }

    async fn close_sessions(
        &self,
        _: Request<v1::CloseSessionsRequest>,
    ) -> Result<Response<v1::CloseSessionsResponse>, Status> {
        Err(none())
    }

    async fn hear(&self, _: Request<v1::HearRequest>) -> Result<Response<v1::HearResponse>, Status> {
        Err(none())
    }

    async fn nudge(&self, _: Request<v1::NudgeRequest>) -> Result<Response<v1::NudgeResponse>, Status> {
        Err(none())
    }
}
