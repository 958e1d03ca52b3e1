//! OTLP over HTTP through the client that everything else of ours uses.
//!
//! The threads of the exporters have no runtime of their own, so each request runs on that of the process.

use std::pin::Pin;
use std::time::Duration;

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::redirect::Policy;
use tokio::runtime::Handle;

/// How long one export may take when `OTEL_EXPORTER_OTLP_TIMEOUT` (milliseconds) says nothing: the specification's own.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What of an answer is read: nothing in it is used but the status.
const LONGEST_ANSWER: usize = 64 * 1024;

/// Sends exports.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    client: reqwest::Client,
    runtime: Handle,
}

impl Sender {
    /// Over the runtime that this is called on. A collector is near, so no proxy is asked; it leads nowhere else.
    ///
    /// # Errors
    /// There is no HTTP client.
    pub(super) fn new() -> reqwest::Result<Self> {
        let said = std::env::var("OTEL_EXPORTER_OTLP_TIMEOUT").ok().and_then(|text| text.trim().parse().ok());
        let timeout = said.map_or(TIMEOUT, Duration::from_millis);
        let client = reqwest::Client::builder().no_proxy().redirect(Policy::none()).timeout(timeout).build()?;
        Ok(Self { client, runtime: Handle::current() })
    }
}

async fn send(client: reqwest::Client, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let mut answer = client.execute(request.try_into()?).await?;
    let mut response = Response::builder().status(answer.status());
    if let Some(headers) = response.headers_mut() {
        *headers = std::mem::take(answer.headers_mut());
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        body.extend_from_slice(&chunk[..chunk.len().min(LONGEST_ANSWER - body.len())]);
        if body.len() == LONGEST_ANSWER {
            break;
        }
    }
    Ok(response.body(body.into())?)
}

impl HttpClient for Sender {
    fn send_bytes<'s, 'f>(
        &'s self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        let sending = self.runtime.spawn(send(self.client.clone(), request));
        Box::pin(async move { sending.await? })
    }
}
