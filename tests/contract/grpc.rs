//! The gRPC API: the same tools, sessions and refusals as over REST; health and reflection.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use caribou_proto::v1;
use caribou_proto::v1::call_tool_event::Event;
use caribou_proto::v1::tool_service_client::ToolServiceClient;
use caribou_tests::{Caribou, HttpFake, Setup, StdioFake, eventually};
use futures::StreamExt as _;
use prost::Message as _;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

const SOON: Duration = Duration::from_secs(20);

/// Caribou with one stdio server named `fake`, and a channel to its gRPC door.
async fn serving(script: Value, settings: &str) -> (Caribou, StdioFake, Channel) {
    let setup = Setup::new().variable("CARIBOU_GRPC_LISTEN", "127.0.0.1:0").settings(settings);
    let fake = StdioFake::new(setup.home(), "fake", script);
    let caribou = setup.server("fake", fake.entry()).start().await;
    let channel = channel(&caribou).await;
    (caribou, fake, channel)
}

async fn channel(caribou: &Caribou) -> Channel {
    let url = caribou.grpc_url().await.replacen("grpc", "http", 1);
    Endpoint::from_shared(url).unwrap().connect().await.unwrap()
}

fn call(name: &str) -> v1::CallToolRequest {
    v1::CallToolRequest { name: name.to_owned(), ..Default::default() }
}

fn code(status: &Status) -> &str {
    status.metadata().get("caribou-code").unwrap_or_else(|| panic!("no code: {status:?}")).to_str().unwrap()
}

/// Invariant W1, on this door.
#[tokio::test]
async fn tools_are_listed_and_called_byte_for_byte() {
    let odd = r#"{"zeta":1.0,"content":[{"type":"hologram","b":9223372036854775808}],"_meta":{"z":null}}"#;
    let script = format!(r#"{{"calls": {{"odd": [{{"result": {odd}}}], "params": [{{"text": "$PARAMS"}}]}}}}"#);
    let (caribou, _fake, channel) = serving(serde_json::from_str(&script).unwrap(), "").await;
    let mut tools = ToolServiceClient::new(channel);
    let listed = tools.list_tools(v1::ListToolsRequest::default()).await.unwrap().into_inner();
    let named: Vec<_> = listed.tools.iter().map(|tool| (&*tool.name, &*tool.server, &*tool.raw_name)).collect();
    assert_eq!(named, [("fake_odd", "fake", "odd"), ("fake_params", "fake", "params")]);
    let over_rest = caribou.tools().await;
    assert_eq!(serde_json::from_str::<Value>(&listed.tools[0].tool).unwrap(), over_rest[0]["tool"]);

    let answer = tools.call_tool(call("fake_params")).await.unwrap().into_inner();
    assert!(!answer.result.contains("arguments"), "absent stays absent: {}", answer.result);
    let arguments = r#"{"z":1.0,"a":18446744073709551617,"n":null}"#;
    let request = v1::CallToolRequest { arguments: Some(arguments.to_owned()), ..call("fake_params") };
    let answer = tools.call_tool(request).await.unwrap().into_inner();
    let text: Value = serde_json::from_str(&answer.result).unwrap();
    assert!(text["content"][0]["text"].as_str().unwrap().contains(arguments), "{}", answer.result);
}

#[tokio::test]
async fn each_thread_has_its_session_and_each_request_its_id() {
    let (_caribou, _fake, channel) = serving(json!({ "calls": { "bump": [{ "text": "$N" }] } }), "").await;
    let mut tools = ToolServiceClient::new(channel);
    let mut bump = async |thread: &str| {
        let scope = Some(v1::Scope { user_id: "ann".to_owned(), thread_id: thread.to_owned() });
        let mut request = Request::new(v1::CallToolRequest { scope, ..call("fake_bump") });
        request.metadata_mut().insert("x-request-id", MetadataValue::from_static("req-7"));
        let answered = tools.call_tool(request).await.unwrap();
        assert_eq!(answered.metadata().get("x-request-id").unwrap(), "req-7");
        let answer = answered.into_inner();
        assert_eq!(answer.request_id, "req-7");
        let session = answer.session.unwrap();
        assert_eq!((&*session.server, session.epoch, session.restarted), ("fake", 1, false));
        serde_json::from_str::<Value>(&answer.result).unwrap()["content"][0]["text"].clone()
    };
    assert_eq!([bump("kitchen").await, bump("kitchen").await, bump("garden").await], ["1", "2", "1"]);
}

#[tokio::test]
async fn progress_comes_before_the_result() {
    let calls = json!({ "calls": {
        "work": [{ "progress": 1 }, { "progress": 2 }, { "text": "done" }],
        "refused": [{ "progress": 1 }, { "error": { "code": -32602, "message": "no such thing" } }],
    } });
    let (_caribou, _fake, channel) = serving(calls, "").await;
    let mut tools = ToolServiceClient::new(channel);
    let stream = tools.call_tool_streaming(call("fake_work")).await.unwrap().into_inner();
    let events: Vec<_> = stream.map(|event| event.unwrap().event.unwrap()).collect().await;
    let [Event::Progress(first), Event::Progress(second), Event::Result(result)] = &events[..] else {
        panic!("{events:?}")
    };
    let progress = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!([progress(first)["progress"].as_f64(), progress(second)["progress"].as_f64()], [Some(1.0), Some(2.0)]);
    assert!(progress(first).get("progressToken").is_none(), "{first}");
    assert!(result.result.contains("done"), "{result:?}");

    let stream = tools.call_tool_streaming(call("fake_refused")).await.unwrap().into_inner();
    let events: Vec<_> = stream.collect().await;
    assert!(events[0].is_ok() && events.len() == 2, "{events:?}");
    assert_eq!(code(events[1].as_ref().unwrap_err()), "upstream_error");
}

#[tokio::test]
async fn a_refusal_says_which_word_it_is_over_rest() {
    let calls = json!({ "calls": { "refused": [{ "error": { "code": -32602, "message": "no such thing" } }] } });
    let (_caribou, _fake, channel) = serving(calls, "").await;
    let mut tools = ToolServiceClient::new(channel);
    let unknown = tools.call_tool(call("fake_unknown")).await.unwrap_err();
    assert_eq!((unknown.code(), code(&unknown)), (Code::NotFound, "not_found"));
    assert!(unknown.metadata().get("x-request-id").is_some());

    let refused = tools.call_tool(call("fake_refused")).await.unwrap_err();
    assert_eq!((refused.code(), code(&refused)), (Code::Unknown, "upstream_error"));
    let upstream = refused.metadata().get_bin("caribou-upstream-bin").unwrap().to_bytes().unwrap();
    assert_eq!(&upstream[..], br#"{"code":-32602,"message":"no such thing"}"#);

    let scope = Some(v1::Scope { user_id: String::new(), thread_id: "a b".to_owned() });
    for wrong in [
        v1::CallToolRequest { arguments: Some("hunter2".to_owned()), ..call("fake_refused") },
        v1::CallToolRequest { timeout_seconds: Some(0.0), ..call("fake_refused") },
        v1::CallToolRequest { scope, ..call("fake_refused") },
    ] {
        let invalid = tools.call_tool(wrong).await.unwrap_err();
        assert_eq!((invalid.code(), code(&invalid)), (Code::InvalidArgument, "invalid"));
        assert!(!invalid.message().contains("hunter2"), "{invalid:?}");
    }

    // Contract 2.4: metadata are kept and shown.
    let mut misplaced = Request::new(call("fake_refused"));
    misplaced.metadata_mut().insert("auth_token", MetadataValue::from_static("hunter2"));
    let invalid = tools.call_tool(misplaced).await.unwrap_err();
    assert_eq!((invalid.code(), code(&invalid)), (Code::InvalidArgument, "invalid"));
    assert!(!invalid.message().contains("hunter2"), "{invalid:?}");
}

/// Contract 9.4: what is deferred is found before it is called.
#[tokio::test]
async fn deferred_tools_are_searched_for() {
    let script = json!({ "calls": { "bake": ["default"], "boil": ["default"] } });
    let (_caribou, _fake, channel) = serving(script, "tool_search: {enabled: true}\n").await;
    let mut tools = ToolServiceClient::new(channel);
    let listed = tools.list_tools(v1::ListToolsRequest::default()).await.unwrap().into_inner();
    assert_eq!(listed.deferred, ["fake_bake", "fake_boil"]);
    let unfetched = tools.call_tool(call("fake_bake")).await.unwrap_err();
    assert_eq!((unfetched.code(), code(&unfetched)), (Code::PermissionDenied, "denied"));
    let search = v1::SearchToolsRequest { scope: None, query: "select:fake_bake".to_owned() };
    let found = tools.search_tools(search).await.unwrap().into_inner();
    assert_eq!(found.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["fake_bake"]);
    tools.call_tool(call("fake_bake")).await.unwrap();
}

#[tokio::test]
async fn a_caller_that_goes_away_cancels_its_call() {
    let (_caribou, fake, channel) = serving(json!({ "calls": { "hang": ["hang"] } }), "").await;
    let calls = || fake.log().received("tools/call").len();
    let cancels = || fake.log().events("cancelled").len();

    let mut tools = ToolServiceClient::new(channel.clone());
    let unary = tokio::spawn(async move { tools.call_tool(call("fake_hang")).await });
    eventually(SOON, "the call", async || (calls() == 1).then_some(())).await;
    unary.abort();
    eventually(SOON, "the cancel", async || (cancels() == 1).then_some(())).await;

    let stream = ToolServiceClient::new(channel).call_tool_streaming(call("fake_hang")).await.unwrap();
    eventually(SOON, "the second call", async || (calls() == 2).then_some(())).await;
    drop(stream);
    eventually(SOON, "the second cancel", async || (cancels() == 2).then_some(())).await;
}

/// One call as bytes on a connection of its own: the client library would give up by itself.
async fn answered(caribou: &Caribou, timeout: &'static str, request: &v1::CallToolRequest) -> http::HeaderMap {
    let url = caribou.grpc_url().await;
    let stream = TcpStream::connect(url.strip_prefix("grpc://").unwrap()).await.unwrap();
    let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let head = http::Request::post(format!("{}/caribou.v1.ToolService/CallTool", url.replacen("grpc", "http", 1)))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", timeout);
    let (response, mut body) = sender.send_request(head.body(()).unwrap(), false).unwrap();
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(request.encoded_len()).unwrap());
    request.encode(&mut frame).unwrap();
    body.send_data(Bytes::from(frame), true).unwrap();
    // A refusal is one block of headers.
    response.await.unwrap().headers().clone()
}

#[tokio::test]
async fn the_callers_deadline_bounds_the_call() {
    let (caribou, fake, _channel) = serving(json!({ "calls": { "hang": ["hang"] } }), "").await;
    let headers = answered(&caribou, "500m", &call("fake_hang")).await;
    assert_eq!(headers["grpc-status"], (Code::DeadlineExceeded as i32).to_string().as_str(), "{headers:?}");
    assert_eq!(headers["caribou-code"], "timeout");
    eventually(SOON, "the cancel", async || fake.log().events("cancelled").pop()).await;
    let headers = answered(&caribou, "soon", &call("fake_hang")).await;
    assert_eq!(headers["caribou-code"], "invalid", "{headers:?}");
}

#[tokio::test]
async fn health_follows_readiness() {
    let (caribou, _fake, channel) = serving(json!({}), "").await;
    let mut health = HealthClient::new(channel);
    let of = |service: &str| HealthCheckRequest { service: service.to_owned() };
    for service in ["", "caribou.v1.ToolService"] {
        let status = health.check(of(service)).await.unwrap().into_inner().status();
        assert_eq!(status, ServingStatus::Serving, "{service}");
    }
    assert_eq!(health.check(of("no.such.Service")).await.unwrap_err().code(), Code::NotFound);
    let mut watched = health.watch(of("")).await.unwrap().into_inner();
    assert_eq!(watched.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    let stopped = tokio::spawn(caribou.stop());
    assert_eq!(watched.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    assert!(watched.message().await.unwrap().is_none(), "a standing stream does not hold up the end");
    assert!(stopped.await.unwrap().0.success());
}

#[tokio::test]
async fn what_is_served_can_be_discovered() {
    let (_caribou, _fake, channel) = serving(json!({}), "").await;
    let mut reflection = ServerReflectionClient::new(channel);
    let ask = |question| ServerReflectionRequest { host: String::new(), message_request: Some(question) };
    let questions = [
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol("caribou.v1.ToolService".to_owned())),
    ];
    let answers = reflection.server_reflection_info(futures::stream::iter(questions)).await.unwrap().into_inner();
    let answers: Vec<_> = answers.map(|answer| answer.unwrap().message_response.unwrap()).collect().await;
    let [MessageResponse::ListServicesResponse(listed), MessageResponse::FileDescriptorResponse(described)] =
        &answers[..]
    else {
        panic!("{answers:?}")
    };
    let names: Vec<_> = listed.service.iter().map(|service| &*service.name).collect();
    assert!(names.contains(&"caribou.v1.ToolService") && names.contains(&"grpc.health.v1.Health"), "{names:?}");
    assert!(!names.contains(&"caribou.v1.Interceptor"), "not served here: {names:?}");
    assert!(!described.file_descriptor_proto.is_empty());
}

/// Makes a key for `user` that may not use `fake_bake`.
async fn key(setup: &Setup, user: &str) -> String {
    let mut made = setup.command(&["keys", "create", "--json", "--user", user, "--deny", "fake_bake"]);
    let made = made.output().await.unwrap();
    let made: Value = serde_json::from_slice(&made.stdout).unwrap_or_else(|_| panic!("{made:?}"));
    made["key"].as_str().unwrap().to_owned()
}

/// Contract 2.1, architecture §2 "identity of callers", invariant P1.
#[tokio::test]
async fn callers_are_told_apart_as_over_rest() {
    let setup = Setup::new().variable("CARIBOU_GRPC_LISTEN", "127.0.0.1:0");
    let setup = setup.variable("CARIBOU_AUTH_MODE", "api_keys").variable("RUST_LOG", "trace");
    let fake = StdioFake::new(setup.home(), "fake", json!({ "calls": { "bake": ["default"], "boil": ["default"] } }));
    let setup = setup.server("fake", fake.entry());
    let ann = key(&setup, "ann").await;
    let caribou = setup.start().await;
    let mut tools = ToolServiceClient::new(channel(&caribou).await);
    fn with<T>(message: T, bearer: &str) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", format!("Bearer {bearer}").parse().unwrap());
        request
    }

    let nobody = tools.list_tools(v1::ListToolsRequest::default()).await.unwrap_err();
    assert_eq!((nobody.code(), code(&nobody)), (Code::Unauthenticated, "denied"));
    let stranger = tools.call_tool(with(call("fake_boil"), "hunter2")).await.unwrap_err();
    assert_eq!((stranger.code(), code(&stranger)), (Code::Unauthenticated, "denied"));
    assert!(!stranger.message().contains("hunter2"), "invariant O3: {stranger:?}");
    let health = HealthClient::new(channel(&caribou).await).check(HealthCheckRequest::default()).await;
    assert!(health.is_ok(), "orchestrators have no credential: {health:?}");

    let listed = tools.list_tools(with(v1::ListToolsRequest::default(), &ann)).await.unwrap().into_inner();
    assert_eq!(listed.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["fake_boil"]);
    tools.call_tool(with(call("fake_boil"), &ann)).await.unwrap();
    let forbidden = tools.call_tool(with(call("fake_bake"), &ann)).await.unwrap_err();
    assert_eq!((forbidden.code(), code(&forbidden)), (Code::PermissionDenied, "denied"));
    let scope = Some(v1::Scope { user_id: "bob".to_owned(), thread_id: String::new() });
    let other = tools.call_tool(with(v1::CallToolRequest { scope, ..call("fake_boil") }, &ann)).await.unwrap_err();
    assert_eq!((other.code(), code(&other)), (Code::PermissionDenied, "denied"));
    let log = caribou.log();
    assert!(!log.contains("hunter2") && !log.contains(&ann), "invariant O3");
}

/// Architecture §2, identity of callers: one audit row, whatever the door. Contract 8.5: secrets reach the headers that
/// ask for them and nothing else.
#[tokio::test]
async fn a_call_is_on_record_and_its_secrets_are_not() {
    let fake = HttpFake::start(json!({ "calls": { "t": ["default"] } })).await;
    let mapped = json!({ "headers_from_context": { "headers": { "X-Key": "key" }, "on_missing": "passthrough" } });
    let setup = Setup::new().variable("CARIBOU_GRPC_LISTEN", "127.0.0.1:0");
    let caribou = setup.server("s", fake.entry_with(mapped)).start().await;
    let mut tools = ToolServiceClient::new(channel(&caribou).await);
    let secrets = [("key", "canary-7f3a"), ("other", "canary-9c1d")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let mut request = Request::new(v1::CallToolRequest { secrets: secrets.into(), ..call("s_t") });
    request.metadata_mut().insert("x-request-id", MetadataValue::from_static("req-8"));
    tools.call_tool(request).await.unwrap();
    let sent = fake.log().received("tools/call").pop().unwrap();
    assert_eq!(sent.headers["x-key"], "canary-7f3a");
    assert!(!format!("{:?}", fake.log().all()).contains("canary-9c1d"), "nothing asked for it");
    let row = eventually(SOON, "the row", async || {
        let rows = caribou.get("/api/mcp/audit?outcome=ok").await;
        assert!(!rows.body.contains("canary"), "{rows:?}");
        rows.json()["rows"].as_array().unwrap().iter().find(|row| row["request_id"] == "req-8").cloned()
    });
    let row = row.await;
    assert_eq!([&row["door"], &row["tool"], &row["user_id"]], ["grpc", "s_t", "default"], "{row}");
}

/// Architecture §2, identity of callers.
#[tokio::test]
async fn an_address_that_others_reach_is_refused_while_callers_are_not_told_apart() {
    let setup = Setup::new().variable("CARIBOU_GRPC_LISTEN", "0.0.0.0:0");
    let refused = setup.command(&["serve", "--listen", "127.0.0.1:0"]).output().await.unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && refused.stdout.is_empty(), "{said}");
    assert!(said.contains("grpc.listen") && said.contains("auth.mode"), "{said}");
}
