//! The HTTP clients: one for addresses of the configuration file, one for those of a person's own definition.

use std::error::Error;
use std::time::Duration;

use caribou_egress::{Guard, WayOut};
use reqwest::redirect::Policy;

/// One operation: bringing a connection up, waiting for the answer, waiting for its next bytes (contract 7.1).
pub(super) const OPERATION: Duration = Duration::from_secs(15);

/// Builds a client. Panics inside the TLS library unless a rustls provider was installed before.
///
/// # Errors
/// The system's certificates cannot be loaded.
pub(super) fn client(way_out: &WayOut, guard: Option<&Guard>) -> Result<reqwest::Client, String> {
    let builder = reqwest::Client::builder()
        .user_agent(concat!("caribou/", env!("CARGO_PKG_VERSION")))
        // A redirect would carry the client's secret to wherever it leads.
        .redirect(Policy::none())
        .referer(false)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(0)
        .retry(reqwest::retry::never())
        .connect_timeout(OPERATION);
    let builder = match guard {
        Some(guard) => way_out.trust(builder).dns_resolver(guard.resolver()),
        None => way_out.lead(builder),
    };
    builder.build().map_err(|error| describe(&error))
}

/// A failure in words: its causes, without the URL, which may hold a credential (O3).
pub(super) fn describe(error: &reqwest::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut cause: Option<&dyn Error> = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        // Layers repeat what they wrap.
        if !parts.iter().any(|known| known.contains(&part)) {
            parts.push(part);
        }
        cause = error.source();
    }
    if parts.is_empty() { "the HTTP exchange failed".to_owned() } else { parts.join(": ") }
}
