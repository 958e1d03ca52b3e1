//! Connections: what a caller on a socket sees of starts, ends and departures.

use std::net::SocketAddr;
use std::time::Duration;

use crate::replica::{FakeServer, start};
use caribou_rest::RestOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(10);

struct Serving {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<std::io::Result<()>>,
}

async fn serve(server: &FakeServer, drain: Duration) -> Serving {
    let router = start(server, RestOptions::default()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let shutdown = async {
        let _ = stopped.await;
    };
    Serving { address, stop, ended: tokio::spawn(caribou_rest::serve(listener, None, router, shutdown, drain)) }
}

/// Sends a `wait` call and reads until `seen` has come back.
async fn wait_call(address: SocketAddr, accept: &str, seen: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let body = r#"{"name":"wait"}"#;
    let head = format!(
        "POST /api/mcp/tools/call HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    read_until(&mut socket, seen).await;
    socket
}

async fn read_until(socket: &mut TcpStream, seen: &str) -> String {
    let mut text = String::new();
    while !text.contains(seen) {
        let mut piece = [0; 4096];
        let read = timeout(SOON, socket.read(&mut piece)).await.expect("more comes").unwrap();
        assert!(read > 0, "the connection ended after {text}");
        text.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    text
}

#[tokio::test]
async fn a_request_in_flight_is_finished_after_the_stop_signal() {
    let server = FakeServer::default();
    let serving = serve(&server, SOON).await;
    let mut socket = wait_call(serving.address, "text/event-stream", "event: message").await;
    serving.stop.send(()).unwrap();
    server.release.notify_one();
    read_until(&mut socket, "event: result").await;
    timeout(SOON, serving.ended).await.expect("it ends").unwrap().unwrap();
    assert!(TcpStream::connect(serving.address).await.is_err(), "nothing new is accepted");
}

#[tokio::test]
async fn an_open_stream_holds_the_end_no_longer_than_the_drain_time() {
    let server = FakeServer::default();
    let serving = serve(&server, Duration::from_millis(50)).await;
    let _socket = wait_call(serving.address, "text/event-stream", "event: message").await;
    serving.stop.send(()).unwrap();
    timeout(SOON, serving.ended).await.expect("it ends").unwrap().unwrap();
    timeout(SOON, server.cancelled.notified()).await.expect("the call is cancelled");
}

#[tokio::test]
async fn an_idle_connection_does_not_hold_the_end() {
    let serving = serve(&FakeServer::default(), Duration::from_secs(3_600)).await;
    let mut socket = TcpStream::connect(serving.address).await.unwrap();
    socket.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    read_until(&mut socket, "ok").await;
    serving.stop.send(()).unwrap();
    timeout(SOON, serving.ended).await.expect("it ends").unwrap().unwrap();
}

#[tokio::test]
async fn a_connection_closed_by_the_caller_cancels_its_call() {
    let server = FakeServer::default();
    let serving = serve(&server, SOON).await;
    drop(wait_call(serving.address, "text/event-stream", "event: message").await);
    timeout(SOON, server.cancelled.notified()).await.expect("the call is cancelled");
}
