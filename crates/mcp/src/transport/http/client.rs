//! The HTTP clients of the process: one for servers of the operator, a guarded one for personal connections.
//!
//! Owns connections: pooled per origin, kept warm, without Nagle's delay. Follows no redirect and keeps no cookie by
//! itself: what leaves is decided per request, by the transports. The one of the operator leaves by the way out that is
//! configured, proxy included; the guarded one trusts the same authorities, asks no proxy, and connects to nothing but
//! what its guard admits (architecture.md §9, private networks). Neither repeats a request that may
//! have been processed (S2): only one that a connection refused before reading it.

use std::error::Error;
use std::time::Duration;

use caribou_egress::{Guard, Refused, WayOut};
use url::Url;

/// A server that does not accept a connection within this is not there.
const CONNECT: Duration = Duration::from_secs(10);

/// How often an open HTTP/2 connection is asked for a sign of life, and a TCP connection by its kernel: below the
/// minute after which common load balancers and NATs forget an idle flow.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);

/// Idle connections kept for one origin: more calls at once than that are rare, and each costs a descriptor.
const IDLE_CONNECTIONS: usize = 256;

/// A client, and what judges where it goes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct HttpClient {
    /// Sends requests.
    pub(crate) client: reqwest::Client,
    guard: Option<Guard>,
}

impl HttpClient {
    /// Builds one. Panics inside the TLS library unless a rustls provider was installed before.
    ///
    /// # Errors
    /// The system's certificates cannot be loaded.
    pub(crate) fn new(way_out: &WayOut, guard: Option<Guard>) -> Result<Self, String> {
        let builder = match &guard {
            Some(guard) => way_out.trust(builder()).dns_resolver(guard.resolver()),
            None => way_out.lead(builder()),
        };
        let client = builder.build().map_err(|error| describe(&error))?;
        Ok(Self { client, guard })
    }

    /// Judges a URL, which every request must pass before it is sent.
    ///
    /// # Errors
    /// It names an address that the guard does not admit.
    pub(crate) fn check(&self, url: &Url) -> Result<(), Refused> {
        self.guard.as_ref().map_or(Ok(()), |guard| guard.check(url))
    }
}

fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .tcp_nodelay(true)
        .tcp_keepalive(SIGN_OF_LIFE)
        .tcp_keepalive_interval(SIGN_OF_LIFE / 3)
        .tcp_keepalive_retries(3)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .http2_keep_alive_interval(SIGN_OF_LIFE)
        .connect_timeout(CONNECT)
}

/// An HTTP failure in words: its causes, without the URL, whose query may hold a credential (O3).
pub(crate) fn describe(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut cause: Option<&dyn Error> = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        // Layers repeat what they wrap.
        if !text.contains(&part) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&part);
        }
        cause = error.source();
    }
    if text.is_empty() { "the HTTP exchange failed".to_owned() } else { text }
}
