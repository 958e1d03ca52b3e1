//! A scriptable OAuth token endpoint within the test's own process, and the door it puts before an MCP server.
//!
//! Without a script it gives a new bearer token of an hour for every request, with no successor of the refresh token.
//! A strict one rotates: each refresh token is good once, and one that is shown again revokes the whole family.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::http::{HttpFake, status};
use super::script::Status;

/// One token request.
#[derive(Clone, Debug)]
pub struct TokenRequest {
    /// Its headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The form as it came.
    pub raw: String,
}

impl TokenRequest {
    /// The value of a field that needs no decoding; empty when there is none.
    pub fn field(&self, name: &str) -> &str {
        let field = self.raw.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        field.unwrap_or_default()
    }
}

/// A fake that listens on loopback until it is dropped.
#[derive(Debug)]
pub struct TokenFake {
    url: String,
    desk: Arc<Desk>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Desk {
    script: Mutex<VecDeque<Status>>,
    requests: Mutex<Vec<TokenRequest>>,
    /// Values of `Authorization` that servers behind it take.
    good: Mutex<BTreeSet<String>>,
    strict: Mutex<Option<Strict>>,
}

/// A family of refresh tokens, `rt-SECRET-1` the first.
#[derive(Debug)]
struct Strict {
    /// The number of the one that is good; `None` = the family is revoked.
    good: Option<u64>,
    reused: usize,
    /// Requests in the work at once, at most.
    most_at_once: usize,
    at_once: usize,
    life: Duration,
    takes: Duration,
}

impl Strict {
    /// What it answers to the token of this number.
    fn answer(&mut self, number: u64) -> Status {
        let (code, body) = if self.good == Some(number) {
            self.good = Some(number + 1);
            let (access, refresh) = (format!("at-SECRET-{number}"), format!("rt-SECRET-{}", number + 1));
            (200, json!({ "access_token": access, "refresh_token": refresh, "expires_in": self.life.as_secs() }))
        } else {
            self.good = None;
            self.reused += 1;
            (400, json!({ "error": "invalid_grant" }))
        };
        let headers = BTreeMap::from([("content-type".to_owned(), "application/json".to_owned())]);
        Status { code, headers, body: body.to_string() }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TokenFake {
    /// Starts one on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has a free port");
        let url = format!("http://{}/token", listener.local_addr().expect("a bound listener has an address"));
        let desk = Arc::new(Desk::default());
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&desk));
        let task = tokio::spawn(async move { axum::serve(listener, routes).await.expect("serving goes on") });
        Self { url, desk, task }
    }

    /// Its address. To whoever posts anything else there it is a receiver that answers 200.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The field `oauth` of a client `c` with the secret `client-SECRET`, with these members changed.
    pub fn oauth(&self, changed: Value) -> Value {
        let client = json!({ "token_url": self.url, "client_id": "c", "client_secret": "client-SECRET" });
        super::stdio::with(client, changed)
    }

    /// The same for the refresh grant, from `rt-SECRET-1`.
    pub fn refreshing(&self, changed: Value) -> Value {
        let refresh = json!({ "grant_type": "refresh_token", "refresh_token": "rt-SECRET-1" });
        super::stdio::with(self.oauth(refresh), changed)
    }

    /// Answers the next unanswered request with this JSON.
    pub fn then(&self, code: u16, body: &Value) {
        self.then_as(code, "application/json", &body.to_string());
    }

    /// Answers the next unanswered request with this text.
    pub fn then_as(&self, code: u16, content_type: &str, body: &str) {
        let headers = BTreeMap::from([("content-type".to_owned(), content_type.to_owned())]);
        locked(&self.desk.script).push_back(Status { code, headers, body: body.to_owned() });
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<TokenRequest> {
        locked(&self.desk.requests).clone()
    }

    /// From now on it rotates, and revokes the family of a token that is shown again. Access tokens live for so long;
    /// each answer takes so long.
    pub fn be_strict(&self, life: Duration, takes: Duration) {
        let mut strict = locked(&self.desk.strict);
        let good = strict.as_ref().map_or(Some(1), |strict| strict.good);
        *strict = Some(Strict { good, reused: 0, most_at_once: 0, at_once: 0, life, takes });
    }

    /// How often a spent token was shown to a strict one, and how many requests it had at once at most.
    pub fn judgement(&self) -> (usize, usize) {
        locked(&self.desk.strict).as_ref().map_or((0, 0), |strict| (strict.reused, strict.most_at_once))
    }

    /// From now on every token given so far is refused.
    pub fn revoke(&self) {
        locked(&self.desk.good).clear();
    }

    /// Lets only requests into `server` that show a token given here and not revoked.
    pub fn protect(&self, server: &HttpFake) {
        let desk = Arc::clone(&self.desk);
        server.admit_if(move |authorization| {
            if locked(&desk.good).contains(authorization) {
                return None;
            }
            let challenge = ("www-authenticate".to_owned(), "Bearer error=\"invalid_token\"".to_owned());
            Some(Status { code: 401, headers: BTreeMap::from([challenge]), body: String::new() })
        });
    }
}

impl Drop for TokenFake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The answer of a strict one, in its time. The work goes on when whoever asked is gone.
async fn strictly(desk: &Arc<Desk>, number: u64) -> Option<Status> {
    let takes = {
        let mut strict = locked(&desk.strict);
        let strict = strict.as_mut()?;
        strict.at_once += 1;
        strict.most_at_once = strict.most_at_once.max(strict.at_once);
        strict.takes
    };
    let desk = Arc::clone(desk);
    let worked = tokio::spawn(async move {
        let _ = tokio::time::timeout(takes, std::future::pending::<()>()).await;
        let mut strict = locked(&desk.strict);
        let strict = strict.as_mut()?;
        strict.at_once -= 1;
        Some(strict.answer(number))
    });
    worked.await.expect("the work ends")
}

async fn answer(State(desk): State<Arc<Desk>>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let headers = headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let request = TokenRequest { headers, raw: String::from_utf8_lossy(&body).into_owned() };
    let presented = request.field("refresh_token").strip_prefix("rt-SECRET-").and_then(|number| number.parse().ok());
    let number = {
        let mut requests = locked(&desk.requests);
        requests.push(request);
        requests.len()
    };
    // Apart, so that the lock is not held while it is waited.
    let next = locked(&desk.script).pop_front();
    let scripted = match next {
        Some(scripted) => Some(scripted),
        None => strictly(&desk, presented.unwrap_or(0)).await,
    };
    let answer = scripted.unwrap_or_else(|| {
        let body =
            json!({ "access_token": format!("at-SECRET-{number}"), "token_type": "bearer", "expires_in": 3_600 });
        let headers = BTreeMap::from([("content-type".to_owned(), "application/json".to_owned())]);
        Status { code: 200, headers, body: body.to_string() }
    });
    if let Ok(given) = serde_json::from_str::<Value>(&answer.body)
        && let Some(token) = given["access_token"].as_str()
    {
        locked(&desk.good).insert(format!("Bearer {token}"));
    }
    let headers: Vec<(&str, &str)> = answer.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    status(answer.code, &headers, &answer.body)
}
