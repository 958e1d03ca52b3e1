//! Loopback ports and the HTTP client of the tests.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Once;

/// A port that was free a moment ago, for servers that cannot be told to choose one.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
    listener.local_addr().expect("a bound listener has an address").port()
}

/// A client that follows no redirect and uses no proxy of the machine.
pub fn http_client() -> reqwest::Client {
    client().build().expect("a client needs nothing from outside")
}

/// The same with a connection of its own for each request, so that none meets one that is just being closed.
pub fn unpooled_http_client() -> reqwest::Client {
    client().pool_max_idle_per_host(0).build().expect("a client needs nothing from outside")
}

fn client() -> reqwest::ClientBuilder {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // An earlier caller in this process may have installed one already; either serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).tcp_nodelay(true)
}
