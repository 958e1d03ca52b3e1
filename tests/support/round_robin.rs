//! A balancer without stickiness: each request goes to the next replica, also on a connection that is kept.
//!
//! It takes a request whole and passes the answer on as it comes, so that event streams are heard while they last. A
//! client that goes away takes its request along. What it sent where is kept, since a client that met one replica only
//! proves nothing.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Response, StatusCode, header};
use axum::serve::ListenerExt;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::network;

/// The largest request that is taken: far more than a test sends.
const MAX_REQUEST: usize = 4 * 1024 * 1024;

/// What belongs to one connection (RFC 9110, 7.6.1), and what each connection says anew.
const OF_A_HOP: [HeaderName; 5] =
    [header::CONNECTION, header::TRANSFER_ENCODING, header::TE, header::UPGRADE, header::HOST];

/// One request that was passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Which replica got it.
    pub replica: usize,
    /// The method of JSON-RPC; `answer` for a message without one, and the method of HTTP for a request without one.
    pub what: String,
}

/// A balancer that listens on loopback until it is dropped.
#[derive(Debug)]
pub struct RoundRobin {
    url: String,
    front: Arc<Front>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Debug)]
struct Front {
    replicas: Vec<String>,
    client: reqwest::Client,
    passed: Mutex<Vec<Passed>>,
}

impl RoundRobin {
    /// One before the replicas of these addresses.
    pub async fn before(replicas: impl IntoIterator<Item = &str>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has a free port");
        let url = format!("http://{}", listener.local_addr().expect("a bound listener has an address"));
        let listener = listener.tap_io(|stream| {
            // A delay that no balancer would add.
            let _ = stream.set_nodelay(true);
        });
        let front = Arc::new(Front {
            replicas: replicas.into_iter().map(str::to_owned).collect(),
            client: network::unpooled_http_client(),
            passed: Mutex::default(),
        });
        let routes = Router::new().fallback(pass).with_state(front.clone());
        let task = tokio::spawn(async move { axum::serve(listener, routes).await.expect("serving goes on") });
        Self { url, front, task }
    }

    /// Its address without a path.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What was passed on so far, in order.
    pub fn passed(&self) -> Vec<Passed> {
        self.front.passed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for RoundRobin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Front {
    /// The replica whose turn it is.
    fn next(&self, what: String) -> &str {
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        let replica = passed.len() % self.replicas.len();
        passed.push(Passed { replica, what });
        &self.replicas[replica]
    }
}

async fn pass(State(front): State<Arc<Front>>, request: Request) -> Result<Response<Body>, Infallible> {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST).await else {
        return Ok(said(StatusCode::BAD_REQUEST, "half a request"));
    };
    let message: Option<Value> = serde_json::from_slice(&body).ok();
    let what = match &message {
        Some(message) => message["method"].as_str().unwrap_or("answer").to_owned(),
        None => parts.method.to_string(),
    };
    let replica = front.next(what);
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let request = front.client.request(parts.method, format!("{replica}{path}")).headers(of_the_request(parts.headers));
    let answer = match request.body(body).send().await {
        Ok(answer) => answer,
        Err(error) => return Ok(said(StatusCode::BAD_GATEWAY, &format!("{error:?}"))),
    };
    let (status, headers) = (answer.status(), of_the_request(answer.headers().clone()));
    let mut response = Response::new(Body::from_stream(answer.bytes_stream()));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// Without what belongs to one connection alone.
fn of_the_request(mut headers: HeaderMap) -> HeaderMap {
    for name in OF_A_HOP {
        headers.remove(name);
    }
    headers
}

fn said(status: StatusCode, why: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(why.to_owned()));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Bytes;
    use futures::{StreamExt, stream};
    use tokio::sync::mpsc;

    use super::*;

    /// The address of a replica whose answers begin with `name` and never end, and who hears of each that is given up.
    async fn endless(name: &'static str) -> (String, mpsc::Receiver<()>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (given_up, heard) = mpsc::channel(8);
        let answer = async move || {
            let told = Told(given_up.clone());
            let silence = stream::once(async move {
                std::future::pending::<()>().await;
                drop(told);
                Bytes::new()
            });
            Body::from_stream(stream::iter([Bytes::from(name)]).chain(silence).map(Ok::<_, Infallible>))
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        (url, heard)
    }

    struct Told(mpsc::Sender<()>);

    impl Drop for Told {
        fn drop(&mut self) {
            let _ = self.0.try_send(());
        }
    }

    #[tokio::test]
    async fn requests_go_round_and_an_answer_is_heard_while_it_lasts() {
        let ((one, mut given_up), (other, _other)) = (endless("one").await, endless("other").await);
        let balancer = RoundRobin::before([one.as_str(), other.as_str()]).await;
        let client = network::http_client();
        for (body, name) in [(r#"{"method":"ping"}"#, "one"), (r#"{"id":1,"result":{}}"#, "other"), ("", "one")] {
            let mut answer = client.post(format!("{}/mcp?x=1", balancer.url())).body(body).send().await.unwrap();
            assert_eq!(answer.chunk().await.unwrap().unwrap(), name);
        }
        let passed = [(0, "ping"), (1, "answer"), (0, "POST")];
        assert_eq!(balancer.passed(), passed.map(|(replica, what)| Passed { replica, what: what.to_owned() }));
        // Both of its answers were dropped by the client.
        for _ in 0..2 {
            tokio::time::timeout(Duration::from_secs(20), given_up.recv()).await.unwrap().unwrap();
        }
    }
}
