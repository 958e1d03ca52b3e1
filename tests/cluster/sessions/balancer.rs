//! The callers' way in: round the replicas, without stickiness, as a load balancer sends them.
//!
//! A connection that is refused goes to the next replica, since nothing was sent. Everything else is the caller's to
//! hear. Each call has a connection of its own: whether one that is kept is still good is not what these runs are
//! about.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_tests::counter_server::boot_clock_ns;
use caribou_tests::network;
use serde_json::{Value, json};

use super::history::{Call, Counted, History, Outcome};

/// The server that is called.
pub(crate) const SERVER: &str = "counter";

/// For whom.
pub(crate) const USER: &str = "ann";

/// A caller waits no longer: beyond the longest time that a replica is frozen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Codes that say that nothing was done (`caribou_core::failure`, repeated here so that a change is noticed).
const NOT_DONE: [&str; 8] =
    ["busy", "not_found", "denied", "invalid", "conflict", "config_changed", "session_ended", "unavailable"];

/// Sends calls round the replicas and keeps their history.
#[derive(Clone, Debug)]
pub(crate) struct Balancer {
    doors: Arc<Mutex<Vec<Option<String>>>>,
    next: Arc<AtomicUsize>,
    calls: Arc<AtomicU64>,
    client: reqwest::Client,
    history: History,
}

impl Balancer {
    /// One with so many seats, all shut.
    pub(crate) fn new(seats: usize) -> Self {
        Self {
            doors: Arc::new(Mutex::new(vec![None; seats])),
            next: Arc::default(),
            calls: Arc::default(),
            client: network::unpooled_http_client(),
            history: History::default(),
        }
    }

    /// Where this seat is reached from now on; `None` = its health check has failed.
    pub(crate) fn set(&self, seat: usize, door: Option<&str>) {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner)[seat] = door.map(str::to_owned);
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// Counts once in this thread, which takes so long.
    pub(crate) async fn count(&self, thread: &str, takes: Duration) -> Call {
        let id = format!("c{}", self.calls.fetch_add(1, Ordering::Relaxed));
        let body = json!({
            "name": format!("{SERVER}_count"), "thread_id": thread, "user_id": USER,
            "arguments": { "call_id": id, "ms": takes.as_millis() as u64 },
        })
        .to_string();
        let invoked_ns = self.history.begin(&id);
        let (seat, outcome) = self.go_round(&body, &id).await;
        let thread = thread.to_owned();
        let call = Call { id, thread, seat, invoked_ns, returned_ns: boot_clock_ns(), outcome };
        self.history.end(call.clone());
        call
    }

    async fn go_round(&self, body: &str, id: &str) -> (Option<usize>, Outcome) {
        let doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        for at in 0..doors.len() {
            let seat = (first + at) % doors.len();
            let Some(door) = &doors[seat] else { continue };
            let request = self.client.post(format!("{door}/api/mcp/tools/call")).timeout(PATIENCE);
            let sent = request.header("content-type", "application/json").body(body.to_owned()).send().await;
            let heard = match sent {
                Err(error) if error.is_connect() => continue,
                Err(error) => Err(format!("{error:?}")),
                Ok(answer) => answer.text().await.map_err(|error| format!("{error:?}")),
            };
            return (Some(seat), heard.map_or_else(Outcome::Unknown, |text| outcome(&text, id)));
        }
        (None, Outcome::Refused("every door is shut".to_owned()))
    }
}

fn outcome(text: &str, id: &str) -> Outcome {
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    let (told, session) = (&answer["result"]["structuredContent"], &answer["session"]);
    if told["call"] == id {
        return Outcome::Counted(Counted {
            count: told["count"].as_u64().unwrap_or_default(),
            life: told["life"].as_str().unwrap_or_default().to_owned(),
            epoch: session["epoch"].as_u64().unwrap_or_default(),
            replica: session["replica"].as_str().unwrap_or_default().to_owned(),
            restarted: session["restarted"] == true,
        });
    }
    let is_refused = answer["code"].as_str().is_some_and(|code| NOT_DONE.contains(&code));
    if is_refused { Outcome::Refused(text.to_owned()) } else { Outcome::Unknown(text.to_owned()) }
}
