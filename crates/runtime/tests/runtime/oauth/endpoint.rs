//! A token endpoint in memory, and a replica whose connector shows the tokens its sessions were given.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou_core::config::Secret;
use caribou_ports::BoxFuture;
use caribou_ports::access_token::{AccessToken, AccessTokens, NoToken};
use caribou_ports::mcp::{Connector, OpenError, OpenSession, Session};
use caribou_ports::token_endpoint::{TokenAnswer, TokenEndpoint, TokenRequest, TokenRequestError};
use caribou_runtime::{Options, Outside};
use serde_json::{Value, json};

use crate::fake::call;
use crate::followed::Setting;

/// What one request comes to.
pub(super) enum Outcome {
    /// A token of an hour, and the successor of the refresh token.
    Given(Option<&'static str>),
    Fails(TokenRequestError),
    Hangs,
    Panics,
}

/// The endpoint: each request takes a second. Without a script it gives a token of an hour and no successor.
#[derive(Default)]
pub(super) struct Endpoint {
    script: Mutex<VecDeque<Outcome>>,
    /// What was presented, in order; empty for client credentials.
    presented: Mutex<Vec<String>>,
    running: AtomicUsize,
    pub(super) most_at_once: AtomicUsize,
}

impl Endpoint {
    pub(super) fn then(&self, outcome: Outcome) {
        self.script.lock().unwrap().push_back(outcome);
    }

    pub(super) fn requests(&self) -> usize {
        self.presented.lock().unwrap().len()
    }

    pub(super) fn presented(&self) -> Vec<String> {
        self.presented.lock().unwrap().clone()
    }

    async fn answer(&self, number: usize) -> Result<TokenAnswer, TokenRequestError> {
        let outcome = self.script.lock().unwrap().pop_front().unwrap_or(Outcome::Given(None));
        tokio::time::sleep(Duration::from_secs(1)).await;
        match outcome {
            Outcome::Given(successor) => Ok(TokenAnswer {
                header: Secret::new(format!("Bearer at-{number}")),
                expires_in: 3_600,
                refresh_token: successor.map(Secret::new),
            }),
            Outcome::Fails(error) => Err(error),
            Outcome::Hangs => std::future::pending().await,
            Outcome::Panics => panic!("told by the hook"),
        }
    }
}

/// The endpoint as the runtime knows it.
struct Asked(Arc<Endpoint>);

impl TokenEndpoint for Asked {
    fn request(&self, request: TokenRequest) -> BoxFuture<'static, Result<TokenAnswer, TokenRequestError>> {
        let endpoint = self.0.clone();
        Box::pin(async move {
            let presented = request.refresh_token.map(|token| token.expose().to_owned()).unwrap_or_default();
            let number = {
                let mut log = endpoint.presented.lock().unwrap();
                log.push(presented);
                log.len()
            };
            let _running = Running::enter(&endpoint);
            endpoint.answer(number).await
        })
    }
}

/// Counts a request however it ends.
struct Running(Arc<Endpoint>);

impl Running {
    fn enter(endpoint: &Arc<Endpoint>) -> Self {
        let running = endpoint.running.fetch_add(1, Ordering::SeqCst) + 1;
        endpoint.most_at_once.fetch_max(running, Ordering::SeqCst);
        Self(endpoint.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What one session was opened with.
pub(super) struct Given {
    pub(super) label: String,
    pub(super) is_optional: bool,
    pub(super) tokens: Option<Arc<dyn AccessTokens>>,
}

/// A connector that remembers what it was given.
struct Remembering {
    inner: Arc<dyn Connector>,
    given: Arc<Mutex<Vec<Given>>>,
}

impl Connector for Remembering {
    fn open(&self, request: OpenSession) -> BoxFuture<'static, Result<Arc<dyn Session>, OpenError>> {
        self.given.lock().unwrap().push(Given {
            label: request.label.clone(),
            is_optional: request.credentials.is_token_optional,
            tokens: request.credentials.tokens.clone(),
        });
        self.inner.open(request)
    }
}

/// A replica, its endpoint, and what its sessions were given.
pub(super) struct Stand {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) setting: Setting,
    pub(super) given: Arc<Mutex<Vec<Given>>>,
}

impl Stand {
    pub(super) async fn new(servers: Value) -> Self {
        let (endpoint, given) = (Arc::new(Endpoint::default()), Arc::new(Mutex::new(Vec::new())));
        let setting = Setting::within(servers, Options::default(), |outside| Outside {
            connector: Arc::new(Remembering { inner: outside.connector.clone(), given: given.clone() }),
            token_endpoint: Some(Arc::new(Asked(endpoint.clone()))),
            ..outside
        })
        .await;
        Self { endpoint, setting, given }
    }

    /// One server, `a`, that refreshes from `rt-1`.
    pub(super) async fn refreshing() -> Self {
        Self::new(json!({"a": entry(json!({}))})).await
    }

    /// What a session of a call to this server is given now.
    pub(super) async fn tokens_of(&self, server: &str) -> Arc<dyn AccessTokens> {
        self.setting.runtime.call_tool(call(&format!("{server}_count"), "t")).await.unwrap();
        let given = self.given.lock().unwrap();
        let last = given.iter().rev().find(|given| given.label.starts_with(&format!("{server}/ann"))).unwrap();
        last.tokens.clone().unwrap()
    }

    pub(super) async fn tokens(&self) -> Arc<dyn AccessTokens> {
        self.tokens_of("a").await
    }
}

/// A server with `oauth` that refreshes from `rt-1`, with these members changed.
pub(super) fn entry(changed: Value) -> Value {
    let mut oauth = json!({"token_url": "https://t", "grant_type": "refresh_token", "refresh_token": "rt-1"});
    for (key, value) in changed.as_object().unwrap() {
        oauth[key] = value.clone();
    }
    json!({"type": "http", "url": "http://h", "oauth": oauth})
}

pub(super) fn refused(code: &str) -> Outcome {
    let message = format!("the token endpoint answered HTTP 400: {code}");
    Outcome::Fails(TokenRequestError::Refused { error: Some(code.to_owned()), message })
}

pub(super) fn header(token: &AccessToken) -> &str {
    token.header.expose()
}

/// How a request for a token fails.
pub(super) async fn fails(tokens: &Arc<dyn AccessTokens>) -> NoToken {
    tokens.current().await.unwrap_err()
}
