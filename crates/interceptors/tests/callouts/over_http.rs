//! The JSON of an HTTP interceptor, both ways.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::IntoResponse;
use caribou_core::config::{InterceptorEntry, Secret};
use caribou_ports::interceptor::{Before, InterceptorHeader};
use tokio::net::TcpListener;

use crate::call::{ARGUMENTS, call, made, raw};

/// A path with its query, a login, a body.
type Asked = (String, Option<String>, String);

/// What it answers, and what it was asked.
#[derive(Clone)]
pub(crate) struct Answers {
    pub(crate) status: StatusCode,
    pub(crate) body: Arc<Mutex<String>>,
    pub(crate) asked: Arc<Mutex<Vec<Asked>>>,
}

pub(crate) async fn serve(status: StatusCode, body: &str) -> (String, Answers) {
    let answers = Answers { status, body: Arc::new(Mutex::new(body.to_owned())), asked: Arc::default() };
    let router = Router::new().fallback(answer).with_state(answers.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, answers)
}

async fn answer(State(answers): State<Answers>, uri: Uri, headers: HeaderMap, body: Bytes) -> impl IntoResponse {
    let login = headers.get("authorization").map(|login| login.to_str().unwrap().to_owned());
    let body = String::from_utf8(body.to_vec()).unwrap();
    answers.asked.lock().unwrap().push((uri.to_string(), login, body));
    (answers.status, answers.body.lock().unwrap().clone())
}

#[tokio::test]
async fn a_call_is_shown_as_json_and_passes_changed() {
    let (address, answers) = serve(
        StatusCode::OK,
        r#"{"proceed": {"arguments": {"n": 1e400, "b": [1.0]}, "headers": [{"name": "X-A", "value": "1"},
            {"name": "X-B", "value": "2", "per_call": true}]}, "unknown": 1}"#,
    )
    .await;
    let interceptor = made(&InterceptorEntry::of(format!("http://ann:pw@{address}/hook/?k=1")));
    let Before::Proceed { arguments, headers } = interceptor.before(&call()).await.unwrap() else {
        panic!("it lets the call pass")
    };
    // Invariant W1: byte for byte.
    assert_eq!(arguments.unwrap().get(), r#"{"n": 1e400, "b": [1.0]}"#);
    let header =
        |name: &str, value, per_call| InterceptorHeader { name: name.into(), value: Secret::new(value), per_call };
    assert_eq!(headers, [header("X-A", "1", false), header("X-B", "2", true)]);
    let asked = answers.asked.lock().unwrap().clone();
    let expected = format!(
        r#"{{"call":{{"server":"github","tool":"search","visible_tool":"github_search","user_id":"ann","thread_id":"t1","run_id":"r1","request_id":"q1","arguments":{ARGUMENTS},"headers":[{{"name":"X-Tenant","value":"7"}}],"secrets":{{"key":"hunter22"}}}}}}"#
    );
    assert_eq!(asked, [("/hook/before?k=1".to_owned(), Some("Basic YW5uOnB3".to_owned()), expected)]);
}

#[tokio::test]
async fn it_may_answer_or_deny() {
    // Contract 8.6, may return.
    let (address, answers) = serve(StatusCode::OK, r#"{"answer": {"content": [], "x": 1.0}}"#).await;
    let interceptor = made(&InterceptorEntry::of(format!("http://{address}")));
    let Before::Answer(result) = interceptor.before(&call()).await.unwrap() else { panic!("it answers") };
    assert_eq!(result.get(), r#"{"content": [], "x": 1.0}"#);
    *answers.body.lock().unwrap() = r#"{"deny": "not on Sundays"}"#.to_owned();
    let Before::Deny(why) = interceptor.before(&call()).await.unwrap() else { panic!("it denies") };
    assert_eq!(why, "not on Sundays");
}

#[tokio::test]
async fn a_result_is_shown_and_passes_changed_or_as_it_is() {
    let (address, answers) = serve(StatusCode::OK, "{}").await;
    let interceptor = made(&InterceptorEntry::of(format!("http://{address}/i")));
    let result = r#"{"content":[],"n":18446744073709551617}"#;
    assert_eq!(interceptor.after(&call(), raw(result)).await.unwrap().get(), result);
    let (path, _, body) = answers.asked.lock().unwrap()[0].clone();
    assert!(path == "/i/after" && body.ends_with(&format!(r#","result":{result}}}"#)), "{path} {body}");
    *answers.body.lock().unwrap() = r#"{"result": {"content": [1]}}"#.to_owned();
    assert_eq!(interceptor.after(&call(), raw(result)).await.unwrap().get(), r#"{"content": [1]}"#);
}

#[tokio::test]
async fn an_answer_that_decides_nothing_or_twice_is_a_failure() {
    for (body, why) in [
        ("{}", "it decides nothing"),
        (r#"{"proceed": {}, "deny": "x"}"#, "it decides twice"),
        ("", "no JSON object"),
        ("[]", "no JSON object"),
        (r#"{"deny": 1}"#, "no JSON object"),
        (r#"{"proceed": {"headers": [{"name": "X"}]}}"#, "no JSON object"),
    ] {
        let (address, _answers) = serve(StatusCode::OK, body).await;
        let interceptor = made(&InterceptorEntry::of(format!("http://{address}")));
        let error = interceptor.before(&call()).await.err().unwrap().to_string();
        assert!(error.contains(why) && error.contains(&address), "{body}: {error}");
    }
}
