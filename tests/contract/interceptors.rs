//! `mcpInterceptors` (contract 8.6): the operator's own code around calls, here a service over HTTP.

use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::Uri;
use caribou_tests::{Caribou, HttpFake, Setup, StdioFake};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// An interceptor that decides by what the call's argument `say` asks for.
struct Service {
    url: String,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Service {
    /// Named `name` in headers it sets and results it marks.
    async fn start(name: &'static str) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let router = axum::Router::new().fallback(answer).with_state((name, asked.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, asked }
    }

    /// What it was asked, as `/hook/before` or `/hook/after` and the body.
    fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().unwrap().clone()
    }
}

type Asked = Arc<Mutex<Vec<(String, Value)>>>;

async fn answer(State((name, asked)): State<(&'static str, Asked)>, uri: Uri, body: Bytes) -> String {
    let body: Value = serde_json::from_slice(&body).unwrap();
    asked.lock().unwrap().push((uri.path().to_owned(), body.clone()));
    let header = |name: &str, value: &str| json!({"name": name, "value": value});
    let said = match (uri.path(), body["call"]["arguments"]["say"].as_str().unwrap_or_default()) {
        ("/hook/after", "result") => json!({"result": {"content": [{"type": "text", "text": format!("by {name}")}]}}),
        ("/hook/after", _) => json!({}),
        (_, "deny") => json!({"deny": "not on Sundays"}),
        (_, "answer") => json!({"answer": {"content": [{"type": "text", "text": format!("of {name}")}]}}),
        (_, "illegal") => json!({"proceed": {"headers": [header("X-Bad", "hunter22\r\nX-Evil: 1")]}}),
        (_, "nonsense") => json!({"proceed": {}, "deny": "twice"}),
        (_, "arguments") => json!({"proceed": {"arguments": {"by": name}}}),
        _ => json!({"proceed": {"headers": [header("X-By", name)]}}),
    };
    said.to_string()
}

fn params() -> Value {
    json!({ "calls": { "params": [{ "text": "$PARAMS" }] } })
}

async fn say(caribou: &Caribou, word: &str) -> caribou_tests::Answer {
    caribou.call("fake_params", json!({ "say": word })).await
}

#[tokio::test]
async fn interceptors_wrap_each_other_in_order_and_the_later_header_wins() {
    // Contract 8.6, order, execution.
    let (outer, inner) = (Service::start("outer").await, Service::start("inner").await);
    let fake = HttpFake::start(params()).await;
    let entries = json!([outer.url, "builtin:request-id", {"use": inner.url}]);
    let caribou = Setup::new().server("fake", fake.entry()).interceptors(entries).start().await;
    let called = say(&caribou, "hello").await;
    assert_eq!(called.status, 200, "{called:?}");
    let call = &fake.log().received("tools/call")[0];
    assert_eq!(call.headers.get("x-by").map(String::as_str), Some("inner"));
    let request_id = outer.asked()[0].1["call"]["request_id"].as_str().unwrap().to_owned();
    assert_eq!(call.headers.get("x-request-id"), Some(&request_id));
    let paths = |service: &Service| service.asked().into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    assert_eq!((paths(&outer), paths(&inner)), (vec!["/hook/before".into(), "/hook/after".into()], paths(&outer)));
    let seen = inner.asked()[0].1["call"].clone();
    assert_eq!(
        (&seen["server"], &seen["tool"], &seen["visible_tool"]),
        (&json!("fake"), &json!("params"), &json!("fake_params"))
    );
    assert!(seen["headers"].as_array().unwrap().contains(&json!({"name": "X-By", "value": "outer"})), "{seen}");
    assert_eq!(say(&caribou, "result").await.text(), "by outer", "it sees the result last");
}

#[tokio::test]
async fn each_is_given_the_secrets_that_its_entry_lists_and_no_other() {
    // Contract 8.6; architecture.md §10, interceptors and secrets carrier.
    let (one, two, none) = (Service::start("one").await, Service::start("two").await, Service::start("none").await);
    let fake = HttpFake::start(params()).await;
    let entries =
        json!([{"use": one.url, "secrets": ["tenant", "absent"]}, {"use": two.url, "secrets": ["key"]}, none.url]);
    let caribou = Setup::new().server("fake", fake.entry()).interceptors(entries).start().await;
    let secrets = json!({ "tenant": "hunter22", "key": "hunter23", "other": "hunter24" });
    for carrier in
        [json!({ "config": { "context": { "secrets": secrets } } }), json!({ "context": { "secrets": secrets } })]
    {
        let mut body = carrier;
        body["name"] = "fake_params".into();
        assert_eq!(caribou.post("/api/mcp/tools/call", body.to_string()).await.status, 200);
    }
    let given = |service: &Service| {
        let asked = service.asked();
        assert_eq!(asked.len(), 4, "{asked:?}");
        asked.into_iter().map(|(_, body)| body["call"]["secrets"].clone()).collect::<Vec<_>>()
    };
    assert!(given(&one).iter().all(|secrets| *secrets == json!({ "tenant": "hunter22" })), "{:?}", given(&one));
    assert!(given(&two).iter().all(|secrets| *secrets == json!({ "key": "hunter23" })), "{:?}", given(&two));
    let nothing = json!({});
    assert!(given(&none).iter().all(|secrets| secrets.is_null() || *secrets == nothing), "{:?}", given(&none));
    assert!(
        fake.log().all().iter().all(|seen| !format!("{seen:?}").contains("hunter2")),
        "the server sees none of them"
    );
    assert!(!caribou.log().contains("hunter2"));
}

#[tokio::test]
async fn one_may_change_the_arguments_answer_or_deny() {
    // Contract 8.6, may return.
    let service = Service::start("gate").await;
    let setup = Setup::new();
    let fake = StdioFake::new(setup.home(), "fake", params());
    let caribou = setup.server("fake", fake.entry()).interceptors(json!(service.url)).start().await;
    assert!(say(&caribou, "arguments").await.text().contains(r#""arguments":{"by":"gate"}"#));
    let sent = fake.log().received("tools/call").len();
    assert_eq!(say(&caribou, "answer").await.text(), "of gate");
    let denied = say(&caribou, "deny").await;
    assert_eq!((denied.status, denied.code().as_str()), (403, "denied"));
    assert!(denied.detail().contains("not on Sundays") && denied.detail().contains(&service.url), "{denied:?}");
    let illegal = say(&caribou, "illegal").await;
    assert_eq!((illegal.code().as_str(), illegal.detail().contains("hunter22")), ("denied", false), "{illegal:?}");
    assert_eq!(fake.log().received("tools/call").len(), sent, "none of them reached the server");
}

#[tokio::test]
async fn a_child_is_told_the_headers_with_the_call() {
    // Contract 4.8.
    let service = Service::start("gate").await;
    let setup = Setup::new();
    let fake = StdioFake::new(setup.home(), "fake", params());
    let caribou = setup.server("fake", fake.entry()).interceptors(json!([service.url])).start().await;
    let seen: Value = serde_json::from_str(&say(&caribou, "hello").await.text()).unwrap();
    assert_eq!(seen["_meta"]["headers"], json!({"X-By": "gate"}));
}

#[tokio::test]
async fn one_that_cannot_be_asked_fails_the_call_and_its_address_keeps_its_secrets() {
    // Architecture.md §10, unreachable at call time; invariant O3.
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let setup = Setup::new();
    let fake = StdioFake::new(setup.home(), "fake", params());
    let entry = json!({"use": format!("http://ann:hunter22@{address}/hook?key=hunter22")});
    let caribou = setup.server("fake", fake.entry()).interceptors(json!([entry])).start().await;
    for _ in 0..7 {
        let refused = say(&caribou, "hello").await;
        assert_eq!((refused.status, refused.code().as_str()), (503, "unavailable"), "{refused:?}");
        assert!(refused.detail().contains(&format!("`http://{address}/hook` cannot be reached")), "{refused:?}");
        assert!(!refused.detail().contains("hunter22"), "{refused:?}");
    }
    assert!(say(&caribou, "hello").await.detail().contains("asked again in"), "it is left alone by now");
    assert!(fake.log().received("tools/call").is_empty());
    assert!(!caribou.log().contains("hunter22"), "{}", caribou.log());
}

#[tokio::test]
async fn entries_that_lead_nowhere_are_warned_about_and_the_others_stand() {
    // Contract 8.6, path cannot be resolved; 1.1, another type.
    let service = Service::start("gate").await;
    let setup = Setup::new();
    let fake = StdioFake::new(setup.home(), "fake", params());
    let entries = json!([7, "builtin:nobody", "ftp://hunter22", service.url]);
    let caribou = setup.server("fake", fake.entry()).interceptors(entries).start().await;
    assert_eq!(say(&caribou, "deny").await.code(), "denied");
    let log = caribou.log();
    for word in ["$.mcpInterceptors[0]", "`builtin:nobody` is skipped", "$.mcpInterceptors[2]"] {
        assert!(log.contains(word), "{word} is not in {log}");
    }
    assert!(!log.contains("hunter22"), "{log}");
}

#[tokio::test]
async fn a_python_path_refuses_the_start_with_what_replaces_it_unless_it_is_to_be_skipped() {
    // Architecture.md §10, Python interceptors.
    let setup = Setup::new();
    let fake = StdioFake::new(setup.home(), "fake", params());
    let setup = setup.server("fake", fake.entry()).interceptors(json!(["my_pkg.auth:build"]));
    for verb in [&["serve", "--listen", "127.0.0.1:0"][..], &["check"]] {
        let output = setup.command(verb).output().await.unwrap();
        let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!output.status.success(), "{told}");
        for word in ["$.mcpInterceptors[0]", "Python", "grpc://host:port", "interceptors.unsupported: skip"] {
            assert!(told.contains(word), "{word} is not in {told}");
        }
    }
    let caribou = setup.variable("CARIBOU_INTERCEPTORS_UNSUPPORTED", "skip").start().await;
    assert_eq!(say(&caribou, "hello").await.status, 200);
    assert!(caribou.log().contains("skipped: a Python path"), "{}", caribou.log());
}

#[tokio::test]
async fn another_list_of_interceptors_holds_from_the_next_call_on() {
    // Contract 5.3, interceptors changed.
    let service = Service::start("gate").await;
    let setup = Setup::new();
    let fake = StdioFake::new(setup.home(), "fake", params());
    let caribou = setup.server("fake", fake.entry()).start().await;
    assert_eq!(say(&caribou, "deny").await.status, 200);
    let file = caribou.home().join("extensions_config.json");
    let mut document: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    document["mcpInterceptors"] = json!([service.url]);
    std::fs::write(&file, document.to_string()).unwrap();
    assert_eq!(say(&caribou, "deny").await.code(), "denied");
    assert_eq!(fake.log().pids().len(), 3, "a discovery and a session, then a discovery; who is denied opens none");
}

#[tokio::test]
async fn the_api_leaves_the_interceptors_as_they_are() {
    // Contract 1.1, 2.2: what a change does not name stays.
    let entries = json!(["builtin:request-id", {"use": "http://ann:pw@127.0.0.1:1/x", "secrets": ["k"]}]);
    let fake = HttpFake::start(params()).await;
    let caribou = Setup::new().server("fake", fake.entry()).interceptors(entries.clone()).start().await;
    let shown = caribou.get("/api/mcp/config").await.json();
    assert!(!shown.to_string().contains("pw@"), "{shown}");
    let put = caribou.request("PUT", "/api/mcp/config").json(&shown);
    assert_eq!(caribou.send(put).await.status, 200);
    let stored = std::fs::read_to_string(caribou.home().join("extensions_config.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&stored).unwrap()["mcpInterceptors"], entries);
}
