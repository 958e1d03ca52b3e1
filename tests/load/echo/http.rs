//! The echo over streamable HTTP.
//!
//! Owns the endpoint `/mcp`. It mints session ids and believes every id shown to it. It leaves when its stdin closes,
//! so it never outlives the generator, and when its listener fails. Keeps no invariant.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use caribou_core::era::Era;
use tokio::net::TcpListener;

use super::{Answer, answer};

#[derive(Clone)]
struct Echo {
    era: Era,
    tools: u16,
    sessions: Arc<AtomicU64>,
}

/// Serves so many tools until stdin closes. The first line on stdout is `LISTENING` and the URL.
///
/// # Errors
/// No port can be bound.
pub(crate) fn serve_http(era: Era, tools: u16) -> anyhow::Result<()> {
    std::thread::spawn(|| {
        // Whatever ends the read, the generator is gone.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        std::process::exit(0)
    });
    // One thread: an upstream that takes part of the second core would slow what is measured.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().context("starting the runtime")?;
    runtime.block_on(serve(era, tools))
}

async fn serve(era: Era, tools: u16) -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("binding a port")?;
    println!("LISTENING http://{}/mcp", listener.local_addr().context("asking for the port")?);
    let listener = listener.tap_io(|stream| {
        // Without it a small answer waits 40 ms for an acknowledgement (stack.md 1.6).
        if let Err(error) = stream.set_nodelay(true) {
            eprintln!("echo: TCP_NODELAY: {error}");
        }
    });
    let app = Router::new().route("/mcp", post(receive)).with_state(Echo { era, tools, sessions: Arc::default() });
    axum::serve(listener, app).await.context("serving")
}

async fn receive(State(echo): State<Echo>, body: String) -> Response {
    const JSON: (header::HeaderName, &str) = (header::CONTENT_TYPE, "application/json");
    match answer(echo.era, echo.tools, &body) {
        Answer::Silence => StatusCode::ACCEPTED.into_response(),
        Answer::Opened(text) => {
            let session = format!("echo-{}", echo.sessions.fetch_add(1, Ordering::Relaxed));
            ([JSON, (header::HeaderName::from_static("mcp-session-id"), session.as_str())], text).into_response()
        }
        Answer::Result(text) => ([JSON], text).into_response(),
        Answer::Refused(text) => (refusal(echo.era), [JSON], text).into_response(),
    }
}

/// How the era refuses a request it does not know (mcp.md §3.2): this is what a client tells the eras apart by.
fn refusal(era: Era) -> StatusCode {
    match era {
        Era::Legacy => StatusCode::BAD_REQUEST,
        Era::Modern => StatusCode::NOT_FOUND,
    }
}
