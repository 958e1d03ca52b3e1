//! How requests leave this machine: whom they trust beside the system's authorities, and through which proxy they go.
//!
//! One copy for all clients of servers that an operator names. Which proxy is asked is decided here and not by the HTTP
//! library, so that one rule holds: a configured one, else that of the environment, and never one for this machine
//! itself. A guarded client asks no proxy (see [`crate::Guard`]) and takes the authorities only. An address of a proxy
//! may hold a password and is never printed (O3).

use std::fmt;

use caribou_core::config::Secret;
use reqwest::{Certificate, ClientBuilder, NoProxy, Proxy};
use url::Url;

/// What no proxy is ever asked for: a proxy would look for it on its own machine.
const THIS_MACHINE: &str = "localhost,127.0.0.0/8,::1";

/// How requests leave. Cheap enough to clone at a start.
#[derive(Clone, Default)]
pub struct WayOut {
    authorities: Vec<Certificate>,
    proxies: Vec<Proxy>,
}

/// What a way out is made of.
#[derive(Clone, Debug, Default)]
pub struct WayOutOptions {
    /// Certificates in PEM that are trusted beside the system's.
    pub ca_pem: Vec<u8>,
    /// The proxy for all requests. When absent the environment decides, as it does for most programs: `HTTPS_PROXY`,
    /// `HTTP_PROXY`, `ALL_PROXY`, in small letters too, which win.
    pub proxy: Option<Secret>,
}

/// Why there is no way out. Never repeats an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoWayOut {
    /// The certificates cannot be read.
    #[error("the certificates to trust are not PEM")]
    Certificates,
    /// This setting or variable holds no address of a proxy.
    #[error("`{0}` is no address of a proxy; write http://HOST:PORT")]
    Proxy(&'static str),
}

impl WayOut {
    /// The way out that these options and the environment lead to; `NO_PROXY` holds in either case.
    ///
    /// # Errors
    /// The certificates or the address of a proxy cannot be read.
    pub fn new(options: &WayOutOptions, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, NoWayOut> {
        let authorities = Certificate::from_pem_bundle(&options.ca_pem).map_err(|_| NoWayOut::Certificates)?;
        let variable = |names: [&'static str; 2]| {
            names.into_iter().find_map(|name| env(name).filter(|text| !text.is_empty()).map(|text| (name, text)))
        };
        let all = || variable(["all_proxy", "ALL_PROXY"]);
        let (https, http) = match &options.proxy {
            Some(proxy) => [(); 2].map(|()| Some(("network.proxy", proxy.expose().to_owned()))).into(),
            None => (
                variable(["https_proxy", "HTTPS_PROXY"]).or_else(all),
                variable(["http_proxy", "HTTP_PROXY"]).or_else(all),
            ),
        };
        let except = variable(["no_proxy", "NO_PROXY"]).map_or_else(String::new, |(_, text)| text);
        let except = NoProxy::from_string(&format!("{except},{THIS_MACHINE}"));
        let proxy = |made: fn(Url) -> reqwest::Result<Proxy>, from: Option<(&'static str, String)>| {
            let made = |(name, text): (_, String)| {
                proxy_address(&text).and_then(|address| made(address).ok()).ok_or(NoWayOut::Proxy(name))
            };
            from.map(made).transpose()
        };
        let proxies = [proxy(Proxy::https, https)?, proxy(Proxy::http, http)?];
        let proxies = proxies.into_iter().flatten().map(|proxy| proxy.no_proxy(except.clone())).collect();
        Ok(Self { authorities, proxies })
    }

    /// A client that leaves this way.
    pub fn lead(&self, builder: ClientBuilder) -> ClientBuilder {
        let builder = self.trust(builder);
        self.proxies.iter().cloned().fold(builder, ClientBuilder::proxy)
    }

    /// A client that trusts the same authorities and asks no proxy.
    pub fn trust(&self, builder: ClientBuilder) -> ClientBuilder {
        builder.no_proxy().tls_certs_merge(self.authorities.iter().cloned())
    }
}

/// Reads the address of a proxy, which the environment may hold without a scheme. Only HTTP proxies are spoken to: the
/// library would go past one of another kind without a word.
pub fn proxy_address(text: &str) -> Option<Url> {
    let address = if text.contains("://") { Url::parse(text) } else { Url::parse(&format!("http://{text}")) };
    address.ok().filter(|address| matches!(address.scheme(), "http" | "https") && address.has_host())
}

impl fmt::Debug for WayOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WayOut({} authorities, {} proxies)", self.authorities.len(), self.proxies.len())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// The address of a proxy that answers one request, and what it was asked in the first line.
    async fn proxy() -> (String, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut text = Vec::new();
            while !text.windows(4).any(|window| window == b"\r\n\r\n") {
                assert_ne!(stream.read_buf(&mut text).await.unwrap(), 0, "the request broke off");
            }
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            String::from_utf8(text).unwrap()
        });
        (address, asked)
    }

    fn client(way_out: &WayOut) -> reqwest::Client {
        // Another test of this process may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        way_out.lead(reqwest::Client::builder()).build().unwrap()
    }

    fn to(proxy: &str) -> WayOutOptions {
        WayOutOptions { proxy: Some(Secret::new(proxy)), ..WayOutOptions::default() }
    }

    fn nothing(_: &str) -> Option<String> {
        None
    }

    #[tokio::test]
    async fn the_configured_proxy_is_asked_and_told_its_password() {
        let (address, asked) = proxy().await;
        let way_out = WayOut::new(&to(&format!("http://ann:hunter2@{address}")), &nothing).unwrap();
        assert!(!format!("{way_out:?}").contains("hunter2"));
        let answer = client(&way_out).get("http://server.invalid/mcp").send().await.unwrap();
        assert_eq!(answer.status(), 204);
        let asked = asked.await.unwrap().to_lowercase();
        assert!(asked.starts_with("get http://server.invalid/mcp http/1.1\r\n"), "{asked}");
        assert!(asked.contains("proxy-authorization: basic yw5uomh1bnrlcji="), "{asked}");
    }

    #[tokio::test]
    async fn without_one_the_environment_decides() {
        let (address, asked) = proxy().await;
        let env = |name: &str| (name == "HTTP_PROXY").then(|| address.clone());
        let way_out = WayOut::new(&WayOutOptions::default(), &env).unwrap();
        assert_eq!(client(&way_out).get("http://server.invalid/").send().await.unwrap().status(), 204);
        assert!(asked.await.unwrap().starts_with("GET http://server.invalid/ "));
    }

    #[tokio::test]
    async fn no_proxy_is_asked_for_this_machine_and_for_what_is_excepted() {
        let (address, asked) = proxy().await;
        // Whoever asked the proxy would reach nobody.
        let closed = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap();
        let env = |name: &str| (name == "NO_PROXY").then(|| "server.invalid".to_owned());
        let way_out = WayOut::new(&to(&format!("http://{closed}")), &env).unwrap();
        let refused = client(&way_out).get("http://server.invalid/").send().await.unwrap_err();
        assert!(format!("{refused:?}").contains("dns"), "{refused:?}");
        assert_eq!(client(&way_out).get(format!("http://{address}/here")).send().await.unwrap().status(), 204);
        assert!(asked.await.unwrap().starts_with("GET /here "));
    }

    #[test]
    fn what_is_no_proxy_and_no_certificate_is_refused_without_being_repeated() {
        for wrong in ["", "http://", "http://:hunter2", "ftp://hunter2", "hunter 2", "socks5://hunter2:1"] {
            let refused = WayOut::new(&to(wrong), &nothing).unwrap_err();
            assert_eq!(refused, NoWayOut::Proxy("network.proxy"), "{wrong}");
        }
        // The HTTP library would go past it without a word.
        let env = |name: &str| (name == "ALL_PROXY").then(|| "socks5://hunter2:1".to_owned());
        let refused = WayOut::new(&WayOutOptions::default(), &env);
        assert_eq!(refused.unwrap_err(), NoWayOut::Proxy("ALL_PROXY"));
        let broken = "-----BEGIN CERTIFICATE-----\nhunter2!\n-----END CERTIFICATE-----\n";
        let options = WayOutOptions { ca_pem: broken.into(), proxy: None };
        assert_eq!(WayOut::new(&options, &nothing).unwrap_err(), NoWayOut::Certificates);
    }
}
