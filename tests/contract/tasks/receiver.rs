//! A receiver of task events that answers as a test has scripted it, and checks what it is sent as the standard says.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caribou_tests::eventually;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use tokio::net::TcpListener;

use super::stand::SOON;

/// The secret that every request must be signed with.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// One that another receiver would have.
const OLDER: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

/// Seconds that a timestamp may lie beside the clock of the receiver: Standard Webhooks, "timestamp".
const TOLERANCE: u64 = 300;

/// How a request is answered.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// With this status and body.
    With(u16, &'static str),
    /// 202 and the beginning of a body; the connection breaks in the middle of it.
    Torn,
}

/// One event as it came.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// `webhook-id`: the key of the launch.
    pub(super) key: String,
    /// The body.
    pub(super) body: Value,
    /// The body byte for byte.
    pub(super) raw: Bytes,
    /// The headers, names in lower case.
    pub(super) headers: BTreeMap<String, String>,
    /// Milliseconds since the receiver began.
    pub(super) at_ms: u128,
}

#[derive(Default)]
struct Desk {
    /// Answers to events, in order; the last one stays.
    replies: VecDeque<Reply>,
    /// Answers to questions for a run.
    runs: VecDeque<Reply>,
    told: Vec<Told>,
    /// Paths of the questions for a run.
    asked: Vec<String>,
    /// Whatever was wrong with a request.
    faults: Vec<String>,
}

/// Listens on loopback until it is dropped.
pub(super) struct Receiver {
    url: String,
    desk: Arc<Mutex<Desk>>,
    task: tokio::task::JoinHandle<()>,
}

fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Receiver {
    /// Answers events with these in order, the last one again and again, and questions for a run likewise.
    pub(super) async fn start(replies: &[Reply], runs: &[Reply]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let began = std::time::Instant::now();
        let desk = Desk { replies: replies.to_vec().into(), runs: runs.to_vec().into(), ..Desk::default() };
        let desk = Arc::new(Mutex::new(desk));
        let routes = Router::new().fallback(answer).with_state((Arc::clone(&desk), began));
        let task = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { url, desk, task }
    }

    /// The settings that make Caribou tell it, with further settings of tasks.
    pub(super) fn settings(&self, more: &str, has_look_up: bool) -> String {
        let look_up = format!(", look_up_url: \"{}/threads/{{thread_id}}/runs/{{run_id}}?user={{user_id}}\"", self.url);
        let look_up = if has_look_up { look_up.as_str() } else { "" };
        let url = format!("{}/events", self.url);
        format!("{more}, notify: {{webhook: {{url: \"{url}\", secrets: [{OLDER}, {SECRET}]{look_up}}}}}")
    }

    /// What it was told so far. Every request until now must have been a good one.
    pub(super) fn told(&self) -> Vec<Told> {
        let desk = lock(&self.desk);
        assert!(desk.faults.is_empty(), "{:?}", desk.faults);
        desk.told.clone()
    }

    /// Waits until it was told so often.
    pub(super) async fn until_told(&self, times: usize) -> Vec<Told> {
        eventually(SOON, &format!("{times} events"), async || Some(self.told()).filter(|told| told.len() >= times))
            .await
    }

    /// The paths of the questions for a run so far.
    pub(super) fn asked(&self) -> Vec<String> {
        lock(&self.desk).asked.clone()
    }

    /// Answers from now on like this.
    pub(super) fn now(&self, replies: &[Reply]) {
        lock(&self.desk).replies = replies.to_vec().into();
    }

    /// Says from now on this of every run.
    pub(super) fn runs(&self, runs: &[Reply]) {
        lock(&self.desk).runs = runs.to_vec().into();
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    State((desk, began)): State<(Arc<Mutex<Desk>>, std::time::Instant)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let headers: BTreeMap<String, String> = headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let mut desk = lock(&desk);
    if let Err(fault) = verified(&headers, &body) {
        desk.faults.push(fault);
    }
    let next = |replies: &mut VecDeque<Reply>| {
        let last = replies.len() < 2;
        if last { replies.front().cloned() } else { replies.pop_front() }
    };
    let reply = if method == Method::GET {
        desk.asked.push(uri.to_string());
        next(&mut desk.runs)
    } else {
        let key = headers.get("webhook-id").cloned().unwrap_or_default();
        let read = serde_json::from_slice(&body).unwrap_or_default();
        desk.told.push(Told { key, body: read, raw: body, headers, at_ms: began.elapsed().as_millis() });
        next(&mut desk.replies)
    };
    let response = |status, body| Response::builder().status(status).body(body).unwrap();
    match reply {
        None => response(500, Body::empty()),
        Some(Reply::With(status, body)) => response(status, Body::from(body)),
        Some(Reply::Torn) => {
            let broken = futures::stream::iter([Ok(r#"{"run_id":"#), Err(std::io::Error::other("broken off"))]);
            response(202, Body::from_stream(broken))
        }
    }
}

/// Standard Webhooks, "verifying signatures": one of the signatures is that of our secret over id, time and body.
#[expect(clippy::disallowed_methods, reason = "the standard compares the time of day against replays")]
fn verified(headers: &BTreeMap<String, String>, body: &[u8]) -> Result<(), String> {
    let header = |name: &str| headers.get(name).cloned().ok_or(format!("no {name}: {headers:?}"));
    let (id, timestamp, signatures) =
        (header("webhook-id")?, header("webhook-timestamp")?, header("webhook-signature")?);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?.as_secs();
    let sent: u64 = timestamp.parse().map_err(|_| format!("no time: {timestamp}"))?;
    if now.abs_diff(sent) > TOLERANCE {
        return Err(format!("sent at {sent}, received at {now}"));
    }
    let key = STANDARD.decode(SECRET.trim_start_matches("whsec_")).map_err(|error| error.to_string())?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|error| error.to_string())?;
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    let ours = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    let is_signed = signatures.split(' ').any(|signature| signature == ours);
    if is_signed { Ok(()) } else { Err(format!("none of {signatures} is {ours}")) }
}
