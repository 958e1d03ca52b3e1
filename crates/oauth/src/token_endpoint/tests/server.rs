//! A token endpoint on loopback: it answers with bytes, so that it can be as wrong as any.

use std::sync::{Arc, Mutex};

use caribou_core::config::{OAuth, Secret, Source, parse};
use caribou_core::network::AllowedNetworks;
use caribou_egress::{Guard, WayOut};
use caribou_ports::token_endpoint::{StillHeld, TokenAnswer, TokenEndpoint as _, TokenRequest, TokenRequestError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::super::TokenEndpoints;

/// What the endpoint does after it has read a request.
#[derive(Clone)]
pub(super) enum Then {
    /// Sends these bytes and closes.
    Answer(String),
    /// Sends these bytes, and nothing more for ever; whoever waits finds that its time is over.
    StandStill(String),
}

/// The endpoint.
pub(super) struct Server {
    pub(super) origin: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(super) async fn start(then: Then) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let origin = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serve(connection, then.clone(), log.clone()));
            }
        });
        Self { origin, seen }
    }

    /// With a JSON answer.
    pub(super) async fn answering(status: u16, body: &str) -> Self {
        Self::start(Then::Answer(http(status, "content-type: application/json\r\n", body))).await
    }

    /// The requests as they came.
    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Sends one request for a client of these settings.
    pub(super) async fn ask(&self, members: &str) -> Result<TokenAnswer, TokenRequestError> {
        ask(&format!("{}/token?tenant=hidden-tenant", self.origin), members, false).await
    }
}

pub(super) fn http(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} Whatever\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

async fn serve(mut connection: TcpStream, then: Then, log: Arc<Mutex<Vec<String>>>) {
    let mut request = Vec::new();
    while !is_whole(&String::from_utf8_lossy(&request)) {
        if connection.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
    }
    log.lock().unwrap().push(String::from_utf8(request).unwrap());
    match then {
        Then::Answer(bytes) => {
            let _ = connection.write_all(bytes.as_bytes()).await;
            let _ = connection.shutdown().await;
        }
        Then::StandStill(bytes) => {
            let _ = connection.write_all(bytes.as_bytes()).await;
            // From here on time passes at once while everybody waits.
            tokio::time::pause();
            std::future::pending::<()>().await;
        }
    }
}

fn is_whole(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else { return false };
    let length = head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

/// The field `oauth` with these members.
pub(super) fn oauth(token_url: &str, members: &str) -> OAuth {
    let text = format!(
        r#"{{"mcpServers": {{"a": {{"type": "http", "url": "http://h", "oauth": {{"token_url": "{token_url}", {members}}}}}}}}}"#
    );
    let source = Source { file: "/etc/caribou/x.json".as_ref(), text: text.as_bytes() };
    let server = parse(&source, &|_| None).unwrap().servers.remove(0).config.unwrap();
    server.oauth.clone().unwrap()
}

pub(super) async fn ask(token_url: &str, members: &str, guarded: bool) -> Result<TokenAnswer, TokenRequestError> {
    ask_while(token_url, members, guarded, None).await
}

/// The same with a right to present that may end.
pub(super) async fn ask_while(
    token_url: &str,
    members: &str,
    guarded: bool,
    still_held: Option<StillHeld>,
) -> Result<TokenAnswer, TokenRequestError> {
    let oauth = oauth(token_url, members);
    let refresh_token = oauth.refresh_token.as_ref().map(|token| Secret::new(token.expose()));
    let endpoints = TokenEndpoints::new(Guard::new(AllowedNetworks::default()), &WayOut::default()).unwrap();
    let request = TokenRequest { server: "a".into(), oauth: Arc::new(oauth), refresh_token, guarded, still_held };
    endpoints.request(request).await
}
