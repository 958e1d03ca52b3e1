//! The HTTP client of a webhook: signed requests, bounded answers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Method, Response, StatusCode};
use url::Url;

use crate::signature::{WebhookSecret, signatures};

/// One request, from the name of its host to the last byte of its answer. A receiver only notes what it is told.
const REQUEST: Duration = Duration::from_secs(30);

/// Bringing a connection up.
const CONNECT: Duration = Duration::from_secs(10);

/// Bytes of an answer that are read: it holds one word.
const MAX_ANSWER_BYTES: usize = 65_536;

/// Idle connections kept, one for each delivery at a time.
const IDLE_CONNECTIONS: usize = 8;

/// Sends to one receiver.
#[derive(Debug)]
pub(crate) struct Receiver {
    client: Client,
    secrets: Vec<WebhookSecret>,
}

/// Why there is no answer. Never names an address, which may hold a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAnswer {
    /// There was no connection.
    #[error("no connection could be made")]
    NotConnected,
    /// It took too long.
    #[error("no answer within {} s", REQUEST.as_secs())]
    TooLate,
    /// The connection was lost.
    #[error("the connection was lost before the answer was complete")]
    Broken,
    /// There is too much of it.
    #[error("the answer has more than {MAX_ANSWER_BYTES} bytes")]
    TooLarge,
}

impl Receiver {
    /// Whom the client trusts and which proxy it asks is set in `builder`.
    pub(crate) fn new(builder: ClientBuilder, secrets: Vec<WebhookSecret>) -> Result<Self, reqwest::Error> {
        // The client panics without a provider; an error means that the program has installed one itself.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = builder
            .user_agent(concat!("caribou/", env!("CARGO_PKG_VERSION")))
            // What is signed for one receiver is not for another.
            .redirect(Policy::none())
            .referer(false)
            // When something is told again is decided elsewhere.
            .retry(reqwest::retry::never())
            .tcp_nodelay(true)
            .connect_timeout(CONNECT)
            .timeout(REQUEST)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .build()?;
        Ok(Self { client, secrets })
    }

    /// Sends one signed request.
    pub(crate) async fn send(&self, method: Method, url: Url, id: &str, body: Vec<u8>) -> Result<Response, NoAnswer> {
        let seconds = now();
        let mut request = self.client.request(method, url).header("webhook-id", id);
        request = request.header("webhook-timestamp", seconds);
        if !self.secrets.is_empty() {
            request = request.header("webhook-signature", signatures(&self.secrets, id, seconds, &body));
        }
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        request.send().await.map_err(|error| no_answer(&error))
    }
}

/// The body of an answer, within its bound.
pub(crate) async fn read(mut answer: Response) -> Result<Vec<u8>, NoAnswer> {
    let mut read = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| no_answer(&error))? {
        if read.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(NoAnswer::TooLarge);
        }
        read.extend_from_slice(&chunk);
    }
    Ok(read)
}

/// A status as an error says it.
pub(crate) fn said(status: StatusCode) -> String {
    format!("the receiver answered {}", status.as_u16())
}

fn no_answer(error: &reqwest::Error) -> NoAnswer {
    if error.is_connect() {
        NoAnswer::NotConnected
    } else if error.is_timeout() {
        NoAnswer::TooLate
    } else {
        NoAnswer::Broken
    }
}

/// Seconds of the Unix epoch by this machine's clock, which a receiver compares with its own against replays.
#[expect(clippy::disallowed_methods, reason = "the signature holds the time of day by its standard")]
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
