//! How requests to servers leave: over HTTPS with authorities of one's own, and through a proxy.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_tests::{Authority, HttpFake, Setup, eventually};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

const SOON: Duration = Duration::from_secs(20);

fn script() -> Value {
    json!({ "calls": { "echo": [{ "text": "here" }] } })
}

#[rstest]
#[case::both(&["h2", "http/1.1"], "h2")]
#[case::only_the_newer(&["h2"], "h2")]
#[case::only_the_older(&["http/1.1"], "http/1.1")]
#[case::none_named(&[], "")]
#[tokio::test]
async fn a_server_over_https_is_spoken_to_when_its_authority_is_trusted(
    #[case] offered: &[&str],
    #[case] spoken: &str,
) {
    let authority = Authority::new();
    let fake = HttpFake::start_encrypted(script(), authority.sign().server(offered)).await;
    let setup = Setup::new().server("fake", fake.entry());
    let ca = setup.home().write("ca.pem", authority.pem()).display().to_string();
    let caribou = setup.variable("CARIBOU_NETWORK_CA_FILE", &ca).start().await;
    assert_eq!(caribou.call("fake_echo", json!({})).await.text(), "here");
    let connections = fake.log().events("encrypted");
    assert!(!connections.is_empty() && connections.iter().all(|seen| seen.raw == spoken), "{connections:?}");
}

#[tokio::test]
async fn a_server_over_https_is_refused_when_its_authority_is_not_trusted() {
    let fake = HttpFake::start_encrypted(script(), Authority::new().sign().server(&["h2"])).await;
    let caribou = Setup::new().server("fake", fake.entry()).start().await;
    let refused = caribou.get("/api/mcp/tools").await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "unavailable"), "{refused:?}");
    assert!(refused.detail().contains("certificate"), "{refused:?}");
    eventually(SOON, "the broken handshake", async || fake.log().events("distrusted").pop()).await;
    assert!(fake.log().events("recv").is_empty(), "nothing was told to a stranger");
}

#[tokio::test]
async fn a_bundle_that_cannot_be_used_refuses_the_start_by_name() {
    let setup = Setup::new();
    let ca = setup.home().write("ca.pem", "hunter2").display().to_string();
    let setup = setup.variable("CARIBOU_NETWORK_CA_FILE", &ca);
    let refused = setup.command(&["serve", "--listen", "127.0.0.1:0"]).output().await.unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("network.ca_file"), "{said}");
    assert!(said.contains("ca.pem holds no certificate") && !said.contains("hunter2"), "{said}");
}

/// A proxy that leads every request to one server, whatever is asked for.
struct Proxy {
    address: SocketAddr,
    /// The heads of what it was asked.
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn to(server: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let (seen, server) = (Arc::clone(&heads), server.rsplit_once('/').unwrap().1.to_owned());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(lead(stream, server.clone(), Arc::clone(&seen)));
            }
        });
        Self { address, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Notes the first head of a connection and joins it to the server.
async fn lead(mut stream: TcpStream, server: String, heads: Arc<Mutex<Vec<String>>>) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let mut upstream = TcpStream::connect(server).await?;
    let text = String::from_utf8_lossy(&head).into_owned();
    let is_tunnel = text.starts_with("CONNECT ");
    heads.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    if is_tunnel {
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    } else {
        upstream.write_all(&head).await?;
    }
    copy_bidirectional(&mut stream, &mut upstream).await.map(|_| ())
}

#[tokio::test]
async fn servers_are_reached_through_the_configured_proxy() {
    let fake = HttpFake::start(script()).await;
    let proxy = Proxy::to(fake.url()).await;
    let setup = Setup::new().server("far", json!({ "type": "http", "url": "http://server.invalid/mcp" }));
    let proxy_url = format!("http://ann:hunter2@{}", proxy.address);
    let caribou = setup.server("near", fake.entry()).variable("CARIBOU_NETWORK_PROXY", &proxy_url).start().await;
    assert_eq!(caribou.call("far_echo", json!({})).await.text(), "here");
    let heads = proxy.heads();
    assert!(heads[0].starts_with("POST http://server.invalid/mcp HTTP/1.1\r\n"), "{heads:?}");
    assert!(heads[0].to_lowercase().contains("proxy-authorization: basic "), "{heads:?}");
    // This machine is reached without one.
    assert_eq!(caribou.call("near_echo", json!({})).await.text(), "here");
    assert!(proxy.heads().iter().all(|head| head.contains("server.invalid")), "{:?}", proxy.heads());
    assert!(!caribou.log().contains("hunter2"));
}

#[tokio::test]
async fn the_proxy_of_the_environment_holds_when_none_is_configured_and_sees_nothing_of_https() {
    let authority = Authority::new();
    let fake = HttpFake::start_encrypted(script(), authority.sign().server(&["h2", "http/1.1"])).await;
    let proxy = Proxy::to(fake.url()).await;
    let setup = Setup::new().server("far", json!({ "type": "http", "url": "https://server.invalid/mcp" }));
    let ca = setup.home().write("ca.pem", authority.pem()).display().to_string();
    let setup = setup.variable("CARIBOU_NETWORK_CA_FILE", &ca).variable("https_proxy", &proxy.address.to_string());
    let caribou = setup.start().await;
    assert_eq!(caribou.call("far_echo", json!({})).await.text(), "here");
    let heads = proxy.heads();
    assert!(heads.iter().all(|head| head.starts_with("CONNECT server.invalid:443 ")), "{heads:?}");
    assert!(!heads.is_empty() && !heads.concat().contains("/mcp"), "{heads:?}");
}
