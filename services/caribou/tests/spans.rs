//! Spans leave over OTLP when a collector is named, and say of a call only what operators need.
//!
//! The collector is a bare HTTP/2 server: spans hold their texts plainly, so no decoder is needed to look for them.

#![expect(clippy::unwrap_used, reason = "the lint knows test functions, not the helpers beside them")]

use std::process::Stdio;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::timeout;

const CARIBOU: &str = env!("CARGO_BIN_EXE_caribou");

/// Longer than this takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// An empty message in gRPC's framing: not compressed, no bytes.
const EMPTY_MESSAGE: &[u8] = &[0; 5];

/// Accepts every export and hands its bytes on.
async fn collect(listener: TcpListener, exports: mpsc::Sender<Bytes>) {
    while let Ok((stream, _)) = listener.accept().await {
        let exports = exports.clone();
        tokio::spawn(async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                let exports = exports.clone();
                tokio::spawn(async move {
                    let mut body = request.into_body();
                    let mut export = BytesMut::new();
                    while let Some(chunk) = body.data().await {
                        let chunk = chunk.unwrap();
                        body.flow_control().release_capacity(chunk.len()).unwrap();
                        export.put(chunk);
                    }
                    let head = http::Response::builder().header("content-type", "application/grpc").body(()).unwrap();
                    let mut answer = respond.send_response(head, false).unwrap();
                    answer.send_data(Bytes::from_static(EMPTY_MESSAGE), false).unwrap();
                    let status = http::HeaderMap::from_iter([(
                        http::HeaderName::from_static("grpc-status"),
                        http::HeaderValue::from_static("0"),
                    )]);
                    answer.send_trailers(status).unwrap();
                    exports.send(export.freeze()).await.unwrap();
                });
            }
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_one_span_without_its_arguments() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let collector = format!("http://{}", listener.local_addr().unwrap());
    let (sender, mut exports) = mpsc::channel(64);
    tokio::spawn(collect(listener, sender));
    let folder = tempfile::tempdir().unwrap();
    let server = json!({"command": CARIBOU, "args": ["demo-server"], "cwd": folder.path()});
    let document = json!({"mcpServers": {"demo": server}}).to_string();
    std::fs::write(folder.path().join("extensions_config.json"), document).unwrap();

    let call = Command::new(CARIBOU)
        .args(["tools", "call", "demo_echo", "--arg", "message=hunter2", "--thread", "kitchen"])
        .current_dir(folder.path())
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let ran = timeout(DEADLINE, call).await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "hunter2\n", "{ran:?}");

    // The process has ended, so everything has been sent: spans, metrics and log lines.
    exports.close();
    let mut all = Vec::new();
    while let Some(export) = timeout(DEADLINE, exports.recv()).await.unwrap() {
        all.push(String::from_utf8_lossy(&export).into_owned());
    }
    let spans = all.iter().find(|text| text.contains("call_tool")).unwrap_or_else(|| panic!("no span of it: {all:?}"));
    for told in ["call_tool", "demo", "echo", "default:kitchen", "outcome", "caribou", "tools/call echo", "pipe"] {
        assert!(spans.contains(told), "{told}: {spans}");
    }
    assert!(all.iter().any(|text| text.contains("caribou_call_duration")), "metrics are exported too: {all:?}");
    assert!(all.iter().all(|text| !text.contains("hunter2")), "{all:?}");
}
