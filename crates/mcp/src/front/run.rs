//! The life of a front: lines in, until there are no more or somebody says stop; then an orderly end.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::{Secret, Source, Transport, parse};
use caribou_egress::WayOut;
use caribou_ports::mcp::{Credentials, OpenError};
use http::Method;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::bridge::{Bridge, MAX_IN_FLIGHT};
use super::out::Out;
use crate::transport::http::client::HttpClient;
use crate::transport::http::link::Link;
use crate::wire::limits::ENVELOPE_BYTES;
use crate::wire::line::{LineError, LineReader};

/// How the server is called in messages.
const NAME: &str = "mcp";

/// How long requests may take to finish once the client writes no more, and how long the goodbye may take. Together
/// less than the 2 s after which clients kill.
const FINISH: Duration = Duration::from_millis(1_000);
const GOODBYE: Duration = Duration::from_millis(600);

/// How a front is made.
pub struct FrontOptions {
    /// Where the server is asked.
    pub url: String,
    /// What every request carries, the credential among it. Never printed.
    pub headers: Vec<(String, Secret)>,
    /// How requests leave.
    pub way_out: WayOut,
    /// Bound of one message, of either side.
    pub max_message_bytes: usize,
}

/// Why a front cannot be, or ended before its client did.
#[derive(Debug, thiserror::Error)]
pub enum FrontError {
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up: {0}")]
    HttpClient(String),
    /// The address or a header cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// What the client writes cannot be read any more.
    #[error("a message of the client is longer than {0} bytes")]
    TooLong(usize),
    /// The same, for a reason of the system's.
    #[error("what the client writes cannot be read: {0}")]
    Broken(std::io::Error),
}

/// A stdio front of one server. Connects to nobody before its client asks.
pub struct Front {
    link: Arc<Link>,
    limit: usize,
}

impl Front {
    /// A front of the server at this address.
    ///
    /// # Errors
    /// The address or a header cannot be used; names which, never a value.
    pub fn new(options: FrontOptions) -> Result<Self, FrontError> {
        let FrontOptions { url, headers, way_out, max_message_bytes } = options;
        // The HTTP client panics without a provider; an error means that the program has installed one itself.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = HttpClient::new(&way_out, None).map_err(FrontError::HttpClient)?;
        // As any other server is configured, so that the same rules hold.
        let text = json!({ "mcpServers": { NAME: { "type": "http", "url": url } } }).to_string();
        let unusable = |why: String| FrontError::Unusable(why);
        let source = Source { file: Path::new("--server"), text: text.as_bytes() };
        let document = parse(&source, &|_| None).map_err(|_| unusable("this is no address of a server".to_owned()))?;
        let server = document.servers.into_iter().next().map(|entry| entry.config);
        let server = server.unwrap_or_else(|| Err("this is no address of a server".to_owned())).map_err(unusable)?;
        let Transport::Http(remote) = &server.transport else {
            return Err(unusable("this is no address of a server".to_owned()));
        };
        let credentials = Credentials { headers, ..Credentials::default() };
        let link = Link::new(client, Arc::clone(&server), remote, &credentials).map_err(|error| match error {
            OpenError::NotStartable(why) | OpenError::Denied(why) => unusable(why),
            other => unusable(other.to_string()),
        })?;
        Ok(Self { link: Arc::new(link), limit: max_message_bytes.saturating_add(ENVELOPE_BYTES) })
    }

    /// Serves one client: until it writes no more, reads no more, or `stop`. Then requests may finish for a moment, and
    /// the session is ended.
    ///
    /// # Errors
    /// What the client writes cannot be read any more.
    pub async fn run(
        self,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
        stop: impl Future<Output = ()>,
    ) -> Result<(), FrontError> {
        let (out, writing) = Out::to(output);
        let bridge = Arc::new(Bridge::new(self.link, out, self.limit));
        let mut lines = LineReader::new(input, self.limit);
        let mut stop = pin!(stop);
        let ended = loop {
            let line = tokio::select! {
                () = &mut stop => break Ok(()),
                () = bridge.out.closed() => break Ok(()),
                line = lines.next() => line,
            };
            match line {
                Ok(Some(line)) => bridge.take(line).await,
                Ok(None) => {
                    if let Some(last) = lines.rest() {
                        bridge.take(last).await;
                    }
                    break Ok(());
                }
                Err(LineError::TooLong(limit)) => break Err(FrontError::TooLong(limit)),
                Err(LineError::Broken(error)) => break Err(FrontError::Broken(error)),
            }
        };
        bridge.finish().await;
        drop(bridge);
        // Whoever does not read by now never will.
        let _ = timeout(GOODBYE, writing).await;
        ended
    }
}

impl Bridge {
    /// Lets requests finish, ends those that do not, and the session.
    async fn finish(&self) {
        let all = u32::try_from(MAX_IN_FLIGHT).unwrap_or(u32::MAX);
        let _ = timeout(FINISH, self.room.acquire_many(all)).await;
        self.over.cancel();
        let live = self.live();
        if live.session.is_some() {
            let goodbye = self.link.send(Method::DELETE, &live.url, live.get(&self.link), None);
            // Servers that keep sessions until they are idle answer 405.
            let _ = timeout(GOODBYE, goodbye).await;
        }
    }
}
