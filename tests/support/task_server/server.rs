//! The task server itself: an HTTP endpoint on a free port of loopback, and how well it behaves.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt as _;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::ledger::{Ledger, SeenTask, TaskCounts};
use super::plan::Plan;
use super::wire::{Request, TOOLS, discovered, listed};
use crate::seeded::Seeded;

/// How a server behaves. By default it answers at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manners {
    /// How long it takes over every call of a tool.
    pub takes: Duration,
    /// The share of questions for a status that are answered only after [`Manners::late_by`].
    pub late_share: f64,
    /// How long those take.
    pub late_by: Duration,
    /// The share of questions for a status that are never answered.
    pub hung_share: f64,
    /// Draws which ones.
    pub seed: u64,
}

/// A server that listens until it is dropped.
#[derive(Debug)]
pub struct TaskServer {
    url: String,
    desk: Arc<Desk>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Debug)]
struct Desk {
    manners: Manners,
    ledger: Mutex<Ledger>,
    chance: Mutex<Seeded>,
}

/// The arguments of the tools that are about one task.
#[derive(Deserialize)]
struct About {
    task_id: String,
    #[serde(default)]
    response: Value,
}

/// Counts a request to cancel as under way until it is dropped.
struct UnderWay<'d>(&'d Desk, &'d str);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.ledger().end_cancel(self.1);
    }
}

impl TaskServer {
    /// Starts one on a free port.
    pub async fn start(manners: Manners) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has a free port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("a bound listener has an address"));
        let chance = Mutex::new(Seeded::new(manners.seed));
        let desk = Arc::new(Desk { manners, ledger: Mutex::default(), chance });
        let routes = Router::new().fallback(answer).with_state(desk.clone());
        let listener = listener.tap_io(|stream| {
            // Without it a small answer waits 40 ms for an acknowledgement.
            let _ = stream.set_nodelay(true);
        });
        let task = tokio::spawn(async move { axum::serve(listener, routes).await.expect("serving goes on") });
        Self { url, desk, task }
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its entry in `mcpServers`, with the toolset `job`. Several may name one server.
    pub fn entry(&self) -> Value {
        let [submit, status, cancel, input] = TOOLS;
        json!({
            "type": "http", "url": self.url, "protocol": "modern",
            "task_toolsets": [{
                "name": "job", "submit_tool": submit, "status_tool": status, "cancel_tool": cancel, "input_tool": input,
            }],
        })
    }

    /// How often it was asked what, so far.
    pub fn counts(&self) -> TaskCounts {
        self.desk.ledger().counts
    }

    /// All its tasks as they are now, by number.
    pub fn tasks(&self) -> Vec<SeenTask> {
        self.desk.ledger().tasks(Instant::now())
    }
}

impl Drop for TaskServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(desk): State<Arc<Desk>>, body: String) -> Response {
    let Ok(request) = serde_json::from_str::<Request<'_>>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    if request.is_notification() {
        return StatusCode::ACCEPTED.into_response();
    }
    let answer = match &*request.method {
        "tools/call" => desk.called(&request).await,
        "tools/list" => Some(request.result(&listed())),
        "server/discover" => Some(request.result(&discovered())),
        _ => None,
    };
    let status = if answer.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    let json = [(header::CONTENT_TYPE, "application/json")];
    (status, json, answer.unwrap_or_else(|| request.refused())).into_response()
}

impl Desk {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what a call asks for; `None` = there is no such tool.
    async fn called(&self, request: &Request<'_>) -> Option<String> {
        let call = request.call()?;
        let role = TOOLS.iter().position(|tool| *tool == call.name)?;
        if role == 0 {
            let Ok(plan) = serde_json::from_str::<Plan>(call.arguments.get()) else {
                return Some(request.failed("the arguments are no plan"));
            };
            // What is begun is begun, whether its answer arrives or not.
            let begun = self.ledger().submit(plan, Instant::now());
            self.take_time().await;
            return Some(request.structured(&begun));
        }
        let Ok(About { task_id, response }) = serde_json::from_str(call.arguments.get()) else {
            return Some(request.failed("the arguments name no task"));
        };
        Some(match role {
            1 => {
                self.wait_for_status(&task_id).await;
                request.structured(&self.ledger().status(&task_id, Instant::now()))
            }
            2 => {
                self.ledger().begin_cancel(&task_id);
                let _under_way = UnderWay(self, &task_id);
                self.take_time().await;
                let cancelled = self.ledger().cancelled(&task_id, Instant::now());
                request.structured(&cancelled)
            }
            _ => {
                self.take_time().await;
                match self.ledger().answer(&task_id, response) {
                    Some(()) => request.structured(&json!({ "task_id": task_id })),
                    None => request.failed("there is no such task"),
                }
            }
        })
    }

    async fn take_time(&self) {
        pause(self.manners.takes).await;
    }

    async fn wait_for_status(&self, remote_id: &str) {
        let Manners { takes, late_share, late_by, hung_share, .. } = self.manners;
        let (hangs, is_late) = {
            let mut chance = self.chance.lock().unwrap_or_else(PoisonError::into_inner);
            (chance.happens(hung_share), chance.happens(late_share))
        };
        {
            let mut ledger = self.ledger();
            ledger.asked(remote_id, Instant::now());
            ledger.counts.hung += u64::from(hangs);
            ledger.counts.late += u64::from(is_late && !hangs);
        }
        match (hangs, is_late) {
            (true, _) => std::future::pending().await,
            (false, true) => pause(late_by).await,
            (false, false) => pause(takes).await,
        }
    }
}

async fn pause(time: Duration) {
    if !time.is_zero() {
        let _ = timeout(time, std::future::pending::<()>()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Setup, network};

    async fn ask(server: &TaskServer, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        let answer = network::http_client().post(server.url()).body(body).send().await.unwrap();
        serde_json::from_str::<Value>(&answer.text().await.unwrap()).unwrap()["result"]["structuredContent"].clone()
    }

    #[tokio::test]
    async fn a_task_goes_its_planned_way_and_everything_is_counted() {
        let server = TaskServer::start(Manners::default()).await;
        let begun = ask(&server, "job_submit", Plan::done_after(1, Duration::from_secs(600)).arguments()).await;
        assert_eq!(begun, json!({ "task_id": "job-1", "status": "running" }));
        assert_eq!(ask(&server, "job_status", json!({ "task_id": "job-1" })).await["status"], "running");
        assert_eq!(ask(&server, "job_cancel", json!({ "task_id": "job-1" })).await["status"], "cancelled");
        assert_eq!(ask(&server, "no_such_tool", json!({})).await, Value::Null);
        let counts = server.counts();
        assert_eq!((counts.submits, counts.statuses, counts.cancels, counts.overlapping_cancels), (1, 1, 1, 0));
        assert_eq!(server.tasks()[0].ended, Some(super::super::Ends::Cancelled));
    }

    #[tokio::test]
    async fn what_is_late_and_what_hangs_is_so_by_share() {
        let late_by = Duration::from_millis(30);
        let late = TaskServer::start(Manners { late_share: 1.0, late_by, ..Manners::default() }).await;
        let asked = Instant::now();
        ask(&late, "job_status", json!({ "task_id": "job-1" })).await;
        assert!(asked.elapsed() >= late_by && late.counts().late == 1);
        let hung = TaskServer::start(Manners { hung_share: 1.0, ..Manners::default() }).await;
        let question = ask(&hung, "job_status", json!({ "task_id": "job-1" }));
        assert!(timeout(Duration::from_millis(300), question).await.is_err());
        assert_eq!(hung.counts().hung, 1);
    }

    #[tokio::test]
    async fn caribou_takes_it_for_a_server_of_tasks() {
        let server = TaskServer::start(Manners::default()).await;
        let caribou = Setup::new().server("jobs", server.entry()).start().await;
        let plan = Plan::done_after(3, Duration::from_secs(600)).arguments();
        let told = caribou.call_in("t", "jobs_job_submit", plan).await.json();
        assert!(told["result"]["structuredContent"]["task_id"].is_string(), "{told}");
        assert_eq!(server.tasks()[0].remote_id, "job-3");
    }
}
