//! The gRPC service of an interceptor, both ways.

use std::sync::{Arc, Mutex};

use caribou_core::config::{InterceptorEntry, Secret};
use caribou_core::ids::ServerName;
use caribou_interceptors::Registry;
use caribou_ports::interceptor::{Before, InterceptorHeader, Interceptors};
use caribou_proto::v1::before_response::Decision;
use caribou_proto::v1::interceptor_server::{Interceptor, InterceptorServer};
use caribou_proto::v1::{AfterRequest, AfterResponse, BeforeRequest, BeforeResponse, Header, Proceed};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status};

use crate::call::{ARGUMENTS, call, made, raw};

/// What it says, and what it was asked.
#[derive(Clone, Default)]
pub(crate) struct Script {
    before: Option<Decision>,
    fails: Option<Status>,
    after: Option<String>,
    asked: Arc<Mutex<Vec<BeforeRequest>>>,
    shown: Arc<Mutex<Vec<AfterRequest>>>,
}

#[tonic::async_trait]
impl Interceptor for Script {
    async fn before(&self, request: Request<BeforeRequest>) -> Result<Response<BeforeResponse>, Status> {
        assert!(request.metadata().contains_key("grpc-timeout"), "the deadline is told");
        self.asked.lock().unwrap().push(request.into_inner());
        match &self.fails {
            Some(status) => Err(status.clone()),
            None => Ok(Response::new(BeforeResponse { decision: self.before.clone() })),
        }
    }

    async fn after(&self, request: Request<AfterRequest>) -> Result<Response<AfterResponse>, Status> {
        self.shown.lock().unwrap().push(request.into_inner());
        Ok(Response::new(AfterResponse { result: self.after.clone() }))
    }
}

async fn serve(script: Script) -> InterceptorEntry {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = InterceptorServer::new(script).max_encoding_message_size(usize::MAX);
    let server = Server::builder().add_service(service);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    InterceptorEntry::of(format!("grpc://{address}"))
}

#[tokio::test]
async fn a_call_is_shown_whole_and_passes_changed() {
    let header = |name: &str, per_call| Header { name: name.to_owned(), value: "v".to_owned(), per_call };
    let proceed = Proceed {
        arguments: Some(r#"{"n":1e400}"#.to_owned()),
        headers: vec![header("X-A", false), header("X-B", true)],
    };
    let script = Script { before: Some(Decision::Proceed(proceed)), ..Script::default() };
    let interceptor = made(&serve(script.clone()).await);
    let Before::Proceed { arguments, headers } = interceptor.before(&call()).await.unwrap() else {
        panic!("it lets the call pass")
    };
    assert_eq!(arguments.unwrap().get(), r#"{"n":1e400}"#);
    let set = |name: &str, per_call| InterceptorHeader { name: name.into(), value: Secret::new("v"), per_call };
    assert_eq!(headers, [set("X-A", false), set("X-B", true)]);
    let asked = script.asked.lock().unwrap()[0].call.clone().unwrap();
    assert_eq!((&*asked.server, &*asked.tool, &*asked.visible_tool), ("github", "search", "github_search"));
    assert_eq!((&*asked.user_id, &*asked.thread_id, &*asked.request_id), ("ann", "t1", "q1"));
    assert_eq!((asked.run_id.as_deref(), asked.tool_call_id), (Some("r1"), None));
    assert_eq!(asked.arguments.as_deref(), Some(ARGUMENTS));
    assert_eq!(asked.headers, [Header { name: "X-Tenant".into(), value: "7".into(), per_call: false }]);
    assert_eq!(asked.secrets.get("key").map(String::as_str), Some("hunter22"));
}

#[tokio::test]
async fn over_tls_it_is_trusted_by_the_authorities_that_are_named() {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let identity = Identity::from_pem(own.cert.pem(), own.signing_key.serialize_pem());
    let script = Script { before: Some(Decision::Deny("no".into())), ..Script::default() };
    let mut server = Server::builder().tls_config(ServerTlsConfig::new().identity(identity)).unwrap();
    let server = server.add_service(InterceptorServer::new(script));
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    let entry = InterceptorEntry::of(format!("grpcs://localhost:{port}"));
    let trusting = Registry::new().unwrap().trusting(own.cert.pem().into_bytes());
    let interceptor = trusting.build(&entry, &ServerName::from("s")).unwrap().unwrap();
    assert!(matches!(interceptor.before(&call()).await.unwrap(), Before::Deny(why) if why == "no"));
    let error = made(&entry).before(&call()).await.err().unwrap().to_string();
    assert!(error.contains("no connection"), "{error}");
}

#[tokio::test]
async fn it_may_answer_deny_and_replace_the_result() {
    // Contract 8.6, may return.
    let answering = Script { before: Some(Decision::Answer("{\"content\":[]}".into())), ..Script::default() };
    let interceptor = made(&serve(answering).await);
    let Before::Answer(result) = interceptor.before(&call()).await.unwrap() else { panic!("it answers") };
    assert_eq!(result.get(), "{\"content\":[]}");
    assert_eq!(interceptor.after(&call(), raw(r#"{"a":1.0}"#)).await.unwrap().get(), r#"{"a":1.0}"#);
    let denying =
        Script { before: Some(Decision::Deny("no".into())), after: Some(r#"{"b":2}"#.into()), ..Script::default() };
    let interceptor = made(&serve(denying.clone()).await);
    let Before::Deny(why) = interceptor.before(&call()).await.unwrap() else { panic!("it denies") };
    assert_eq!(why, "no");
    assert_eq!(interceptor.after(&call(), raw(r#"{"a":1.0}"#)).await.unwrap().get(), r#"{"b":2}"#);
    assert_eq!(denying.shown.lock().unwrap()[0].result, r#"{"a":1.0}"#);
}

#[tokio::test]
async fn what_it_fails_with_is_not_repeated() {
    // Invariant O3: the text of a status may repeat what was sent.
    let failing = Script { fails: Some(Status::internal("hunter22")), ..Script::default() };
    for (script, why) in [
        (failing, "gRPC status Internal"),
        (Script::default(), "it decides nothing"),
        (Script { before: Some(Decision::Answer("{".into())), ..Script::default() }, "its answer is not JSON"),
        (
            Script { before: Some(Decision::Answer("0".repeat(17 << 20))), ..Script::default() },
            "more than 16777216 bytes",
        ),
    ] {
        let entry = serve(script).await;
        let error = made(&entry).before(&call()).await.err().unwrap().to_string();
        assert!(error.contains(why) && error.contains(&entry.target) && !error.contains("hunter22"), "{error}");
    }
}
