//! The endpoint: events come to `/events`, runs are looked up at `/runs/{run_id}`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use super::table::{Answer, Moods, ReceiverCounts, Table, ToldEvent};

/// The largest event that is read.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// A receiver that listens until it is dropped.
#[derive(Debug)]
pub struct EventReceiver {
    url: String,
    table: Arc<Mutex<Table>>,
    task: tokio::task::JoinHandle<()>,
}

/// Given back instead of an answer, it closes the connection.
#[derive(Debug)]
struct Dropped;

impl std::fmt::Display for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("dropped, as planned")
    }
}

impl std::error::Error for Dropped {}

impl EventReceiver {
    /// Starts one on a free port.
    pub async fn start(moods: Moods) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has a free port");
        let url = format!("http://{}", listener.local_addr().expect("a bound listener has an address"));
        let table = Arc::new(Mutex::new(Table::new(moods)));
        let task = tokio::spawn(accept(listener, table.clone()));
        Self { url, table, task }
    }

    /// Where events go: `mcp_tasks.notify.webhook.url`.
    pub fn url(&self) -> String {
        format!("{}/events", self.url)
    }

    /// Where runs are looked up: `mcp_tasks.notify.webhook.look_up_url`.
    pub fn look_up_url(&self) -> String {
        format!("{}/runs/{{run_id}}", self.url)
    }

    /// What happened so far.
    pub fn counts(&self) -> ReceiverCounts {
        lock(&self.table).counts
    }

    /// Every event it was told of, by the visible name of its task and its number.
    pub fn events(&self) -> BTreeMap<(String, i64), ToldEvent> {
        lock(&self.table).events()
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, table: Arc<Mutex<Table>>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(serve(stream, table.clone()));
    }
}

async fn serve(stream: TcpStream, table: Arc<Mutex<Table>>) {
    // Without it a small answer waits 40 ms for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let answer = service_fn(move |request| answer(table.clone(), request));
    // A connection that ends is its client's business, or was dropped as planned.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
}

async fn answer(table: Arc<Mutex<Table>>, request: Request<Incoming>) -> Result<Response<Body>, Dropped> {
    if let Some(run) = request.uri().path().strip_prefix("/runs/") {
        let status = lock(&table).looked_up(run);
        let body = status.map(|status| format!(r#"{{"status":"{status}"}}"#));
        return Ok(respond(if body.is_some() { 200 } else { 404 }, body.unwrap_or_default()));
    }
    let key = request.headers().get("webhook-id").and_then(|key| key.to_str().ok()).unwrap_or_default().to_owned();
    let body = Body::new(request.into_body());
    let body = axum::body::to_bytes(body, MAX_EVENT_BYTES).await.map_err(|_| Dropped)?;
    let answer = lock(&table).told(&key, &body);
    match answer {
        Answer::Status(status) => Ok(respond(status, String::new())),
        Answer::Run(id) => Ok(respond(202, format!(r#"{{"run_id":"{id}"}}"#))),
        Answer::Nothing => Err(Dropped),
    }
}

fn respond(status: u16, body: String) -> Response<Body> {
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body(Body::from(body)).expect("a status and a plain header")
}

#[cfg(test)]
mod tests {
    use super::super::Answers;
    use super::*;
    use crate::network;

    #[tokio::test]
    async fn what_is_dropped_has_no_answer_and_a_run_can_be_looked_up() {
        let body = r#"{"data":{"mcp_task_notification":{"task_id":"t","dispatch_version":2,"dispatch_attempt":0}}}"#;
        let tell = async |receiver: &EventReceiver| {
            network::http_client().post(receiver.url()).header("webhook-id", "k").body(body).send().await
        };
        let dropping = EventReceiver::start(Moods { weights: vec![(1, Answers::TakesAndDrops)], seed: 1 }).await;
        assert!(tell(&dropping).await.is_err());
        let launching = EventReceiver::start(Moods { weights: vec![(1, Answers::Launches)], seed: 1 }).await;
        let told = tell(&launching).await.unwrap();
        assert_eq!((told.status().as_u16(), told.text().await.unwrap()), (202, r#"{"run_id":"run-0"}"#.to_owned()));
        let look = network::http_client().get(launching.look_up_url().replace("{run_id}", "run-0")).send().await;
        assert_eq!(look.unwrap().status().as_u16(), 200);
        let event = ToldEvent { keys: 1, requests: 1, effects: 1, failing_runs: 0 };
        assert_eq!(launching.events()[&("t".to_owned(), 2)], event);
    }
}
