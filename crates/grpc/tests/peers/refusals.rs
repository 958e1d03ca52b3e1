//! What a replica does not take, and whom it does not let in.

use std::time::Duration;

use caribou_core::config::Secret;
use caribou_core::failure::Code;
use caribou_core::ids::Epoch;
use caribou_core::session::NotTaken;
use caribou_grpc::Membership;
use caribou_ports::mcp::CallError;
use caribou_ports::peers::{PeerError, Peers as _, Wanted};
use caribou_proto::peer::v1;
use caribou_proto::peer::v1::session_service_client::SessionServiceClient;
use tokio::time::timeout;
use tonic::transport::Endpoint;
use tonic::{Code as Grpc, Request};

use super::stand::{Replica, SECRET, SOON, cabled, call, client, member, open, peer, wanted};

fn not_taken(refused: Option<PeerError>) -> NotTaken {
    match refused {
        Some(PeerError::NotTaken(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// Asks without our own half.
async fn raw_open(
    replica: &Replica,
    secret: &str,
    request: v1::OpenRequest,
) -> Result<v1::OpenResponse, tonic::Status> {
    let endpoint = Endpoint::from_shared(format!("http://{}", replica.address)).unwrap();
    let mut asking = SessionServiceClient::new(endpoint.connect().await.unwrap());
    let mut request = Request::new(request);
    request.metadata_mut().insert("authorization", format!("Bearer {secret}").parse().unwrap());
    asking.open(request).await.map(tonic::Response::into_inner)
}

fn request() -> v1::OpenRequest {
    let key = v1::SessionKey { server: "s".to_owned(), ..Default::default() };
    v1::OpenRequest { to_boot: "b".to_owned(), key: Some(key), within_ms: 1_000, hops: 1, ..Default::default() }
}

#[tokio::test]
async fn another_life_refuses_what_is_meant_for_an_earlier_one() {
    let replica = Replica::plain("b").await;
    let refused = open(&client(member()), "before", replica.address).await.err();
    assert_eq!(not_taken(refused), NotTaken::WrongBoot);
    assert!(replica.owner.opened.lock().unwrap().is_empty());
    let status = raw_open(&replica, SECRET, v1::OpenRequest { to_boot: "before".to_owned(), ..request() }).await;
    assert_eq!(status.unwrap_err().code(), Grpc::FailedPrecondition);
}

/// Invariant S1.
#[tokio::test]
async fn what_was_forwarded_twice_is_refused() {
    let replica = Replica::plain("b").await;
    assert!(raw_open(&replica, SECRET, request()).await.is_ok());
    let refused = raw_open(&replica, SECRET, v1::OpenRequest { hops: 2, ..request() }).await.unwrap_err();
    assert!(refused.code() == Grpc::FailedPrecondition && refused.message().contains("more than once"), "{refused:?}");
    let late = raw_open(&replica, SECRET, v1::OpenRequest { within_ms: 19, ..request() }).await.unwrap_err();
    assert_eq!(late.code(), Grpc::DeadlineExceeded);
}

#[tokio::test]
async fn who_is_no_member_is_let_into_nothing() {
    let replica = Replica::plain("b").await;
    for other in [Membership::new(None), Membership::new(Some(&Secret::new("another secret of 32 characters.")))] {
        let refused = open(&client(other), "b", replica.address).await.err();
        let Some(PeerError::Failed { code: Code::Denied, detail, .. }) = refused else { panic!("{refused:?}") };
        assert!(detail.contains("cluster.secret") && !detail.contains(SECRET), "{detail}");
    }
    let refused = raw_open(&replica, "wrong", request()).await.unwrap_err();
    assert_eq!(refused.code(), Grpc::Unauthenticated);
    assert!(replica.owner.opened.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_owner_at_another_epoch_takes_no_call_and_the_session_ends() {
    let (replica, _proxy, _client, session) = cabled().await;
    *replica.owner.held.lock().unwrap() = Some(Epoch(8));
    let refused = session.call_tool(call("echo", None)).await.unwrap_err();
    assert!(matches!(refused, CallError::Disconnected { sent: false, .. }), "{refused:?}");
    let ended = timeout(SOON, session.ended()).await.unwrap();
    assert_eq!(ended.reason, NotTaken::WrongEpoch.to_string());
    assert_eq!(*replica.owner.begun.borrow(), 0);
}

#[tokio::test]
async fn an_owner_that_is_full_says_so_and_the_session_goes_on() {
    let (replica, _proxy, _client, session) = cabled().await;
    *replica.owner.is_full.lock().unwrap() = true;
    let refused = session.call_tool(call("echo", None)).await.unwrap_err();
    assert!(matches!(refused, CallError::Busy(_)), "{refused:?}");
    *replica.owner.is_full.lock().unwrap() = false;
    assert!(session.call_tool(call("echo", None)).await.is_ok());
}

#[tokio::test]
async fn a_session_that_cannot_be_opened_says_why() {
    let replica = Replica::plain("b").await;
    let mut broken = wanted(None);
    broken.key.server = "broken".into();
    let refused = client(member()).open(peer("b", replica.address), broken).await.err();
    let Some(PeerError::Failed { code: Code::Denied, detail, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(detail, "the server wants another credential");
}

#[tokio::test]
async fn who_cannot_be_reached_costs_a_bounded_wait() {
    // A socket that is bound and not listened on refuses at once; one that never answers costs the whole bound.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let began = std::time::Instant::now();
    let short = Wanted { within: Duration::from_secs(5), ..wanted(None) };
    let refused = client(member()).open(peer("b", silent.local_addr().unwrap()), short).await.err();
    assert!(matches!(refused, Some(PeerError::Unreachable(_))), "{refused:?}");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

/// Invariant B1.
#[tokio::test]
async fn more_requests_than_a_connection_carries_are_refused_at_once() {
    let (replica, _proxy, _client, session) = cabled().await;
    let mut calling = tokio::task::JoinSet::new();
    for _ in 0..256 {
        let session = session.clone();
        calling.spawn(async move { session.call_tool(call("wait", None)).await.is_ok() });
    }
    super::stand::reached(&replica.owner.begun, 256).await;
    let began = std::time::Instant::now();
    let refused = session.call_tool(call("echo", None)).await.unwrap_err();
    assert!(matches!(refused, CallError::Busy(_)) && began.elapsed() < Duration::from_millis(50), "{refused:?}");
    let done = async {
        let mut answered = 0;
        while answered < 256 {
            replica.owner.go_on.notify_waiters();
            replica.owner.go_on.notify_one();
            if let Some(done) = calling.join_next().await {
                assert!(done.unwrap());
                answered += 1;
            }
        }
    };
    timeout(SOON, done).await.unwrap();
    assert!(session.call_tool(call("echo", None)).await.is_ok());
}
