//! A collector of spans: accepts every export over gRPC and keeps its bytes, in which texts stand plainly.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream};

/// One that listens on loopback until the test ends.
pub(super) struct Collector {
    pub(super) url: String,
    exports: Arc<Mutex<Vec<u8>>>,
}

impl Collector {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let exports = Arc::<Mutex<Vec<u8>>>::default();
        let kept = Arc::clone(&exports);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&kept)));
            }
        });
        Self { url, exports }
    }

    /// All bytes so far.
    pub(super) fn exported(&self) -> Vec<u8> {
        self.exports.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Answers each request with an empty message and `grpc-status: 0`.
async fn serve(stream: TcpStream, kept: Arc<Mutex<Vec<u8>>>) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let kept = Arc::clone(&kept);
        tokio::spawn(async move {
            let mut body = request.into_body();
            while let Some(Ok(chunk)) = body.data().await {
                body.flow_control().release_capacity(chunk.len()).unwrap();
                kept.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&chunk);
            }
            let head = http::Response::builder().header("content-type", "application/grpc").body(()).unwrap();
            let mut answer = respond.send_response(head, false).unwrap();
            answer.send_data(Bytes::from_static(&[0; 5]), false).unwrap();
            let done = (http::HeaderName::from_static("grpc-status"), http::HeaderValue::from_static("0"));
            answer.send_trailers(http::HeaderMap::from_iter([done])).unwrap();
        });
    }
}
