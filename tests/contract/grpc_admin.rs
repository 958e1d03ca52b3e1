//! Administration over gRPC: what REST shows and does, under the same permissions.

use std::time::Duration;

use caribou_proto::v1;
use caribou_proto::v1::admin_service_client::AdminServiceClient;
use caribou_proto::v1::admin_service_server::SERVICE_NAME;
use caribou_tests::{Caribou, HttpFake, Setup, StdioFake};
use serde_json::{Value, json};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

async fn channel(caribou: &Caribou) -> Channel {
    let url = caribou.grpc_url().await.replacen("grpc", "http", 1);
    Endpoint::from_shared(url).unwrap().connect().await.unwrap()
}

/// Caribou with one stdio server named `fake`, and its administration.
async fn serving(setup: Setup) -> (Caribou, StdioFake, AdminServiceClient<Channel>) {
    let setup = setup.variable("CARIBOU_GRPC_LISTEN", "127.0.0.1:0");
    let fake = StdioFake::new(setup.home(), "fake", json!({ "calls": { "bump": [{ "text": "$N" }] } }));
    let caribou = setup.server("fake", fake.entry()).start().await;
    let channel = channel(&caribou).await;
    (caribou, fake, AdminServiceClient::new(channel))
}

fn word(status: &Status) -> &str {
    status.metadata().get("caribou-code").unwrap_or_else(|| panic!("no code: {status:?}")).to_str().unwrap()
}

#[tokio::test]
async fn the_status_names_this_replica_its_servers_and_its_sessions() {
    let (caribou, _fake, mut admin) = serving(Setup::new()).await;
    assert_eq!(caribou.call_in("kitchen", "fake_bump", json!({})).await.status, 200);
    let status = admin.status(v1::StatusRequest {}).await.unwrap().into_inner();
    let [replica] = &status.replicas[..] else { panic!("{status:?}") };
    assert!(replica.boot == status.replica && replica.alive && !replica.draining, "{replica:?}");
    assert_eq!((&*replica.version, &*replica.address), (env!("CARGO_PKG_VERSION"), ""));
    assert!(replica.started_at.as_ref().unwrap().seconds > 1_700_000_000, "{replica:?}");
    let [server] = &status.servers[..] else { panic!("{status:?}") };
    assert_eq!((&*server.name, &*server.state, server.tools, server.sessions), ("fake", "ready", 1, 1));
    let [session] = &status.sessions[..] else { panic!("{status:?}") };
    assert_eq!((&*session.server, &*session.user_id, &*session.thread_id), ("fake", "default", "kitchen"));
    assert_eq!((session.epoch, session.in_flight, &session.replica), (1, Some(0), &status.replica));
}

/// Contract 2.2 and 5.7.
#[tokio::test]
async fn the_configuration_is_read_changed_under_its_tag_and_reset() {
    // The launch policy lets no program of the tests through.
    let fake = HttpFake::start(json!({ "calls": { "bump": [{ "text": "$N" }] } })).await;
    let setup = Setup::new().variable("CARIBOU_GRPC_LISTEN", "127.0.0.1:0");
    let caribou = setup.server("fake", fake.entry()).start().await;
    let mut admin = AdminServiceClient::new(channel(&caribou).await);
    let stored = admin.get_config(v1::GetConfigRequest {}).await.unwrap().into_inner();
    let over_rest = caribou.get("/api/mcp/config").await;
    assert_eq!(serde_json::from_str::<Value>(&stored.servers).unwrap(), over_rest.json());
    assert_eq!(stored.etag, over_rest.etag);

    let mut servers: Value = serde_json::from_str(&stored.servers).unwrap();
    servers["mcp_servers"]["fake"]["description"] = "changed".into();
    let put = |etag: &str| v1::PutConfigRequest { servers: servers.to_string(), etag: etag.to_owned() };
    let changed = admin.put_config(put(&stored.etag)).await.unwrap().into_inner();
    assert!(changed.servers.contains(r#""description":"changed""#) && changed.etag != stored.etag, "{changed:?}");
    let conflict = admin.put_config(put(&stored.etag)).await.unwrap_err();
    assert_eq!((conflict.code(), word(&conflict)), (Code::Aborted, "conflict"));
    assert!(admin.put_config(put("")).await.is_ok(), "without a tag the last writer wins");
    for wrong in ["", "[]", r#"{"mcp_servers": {"a": {"type": "hologram"}}}"#] {
        let wrong = v1::PutConfigRequest { servers: wrong.to_owned(), etag: String::new() };
        assert_eq!(admin.put_config(wrong).await.unwrap_err().code(), Code::InvalidArgument);
    }

    assert_eq!(caribou.call("fake_bump", json!({})).await.status, 200);
    let reset = admin.reset(v1::ResetRequest {}).await.unwrap().into_inner();
    assert!(["process", "directory", "cluster"].contains(&&*reset.reach), "{reset:?}");
    assert_eq!((reset.confirmed.len(), reset.unconfirmed.len()), (1, 0), "{reset:?}");
    let status = admin.status(v1::StatusRequest {}).await.unwrap().into_inner();
    assert!(status.sessions.is_empty() && reset.confirmed[0] == status.replica, "{status:?}");
}

/// Invariant P1.
#[tokio::test]
async fn only_admins_may_and_others_see_their_own_sessions_without_texts() {
    let setup = Setup::new().variable("CARIBOU_AUTH_MODE", "api_keys");
    let key = async |user: &str, role: Option<&str>| {
        let mut verb = vec!["keys", "create", "--json", "--user", user];
        verb.extend(role.iter().flat_map(|role| ["--role", *role]));
        let made = setup.command(&verb).output().await.unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let made: Value = serde_json::from_slice(&made.stdout).unwrap();
        made["key"].as_str().unwrap().to_owned()
    };
    let (root, ann) = (key("root", Some("admin")).await, key("ann", None).await);
    let (_caribou, _fake, mut admin) = serving(setup).await;
    fn as_user<T>(key: &str, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        request
    }
    let nobody = admin.status(v1::StatusRequest {}).await.unwrap_err();
    assert_eq!(nobody.code(), Code::Unauthenticated);
    let seen = admin.status(as_user(&ann, v1::StatusRequest {})).await.unwrap().into_inner();
    assert!(seen.replicas.is_empty() && seen.servers.len() == 1, "{seen:?}");
    let all = admin.status(as_user(&root, v1::StatusRequest {})).await.unwrap().into_inner();
    assert_eq!(all.replicas.len(), 1);
    let denied = [
        admin.reset(as_user(&ann, v1::ResetRequest {})).await.map(drop),
        admin.get_config(as_user(&ann, v1::GetConfigRequest {})).await.map(drop),
        admin.put_config(as_user(&ann, v1::PutConfigRequest::default())).await.map(drop),
    ];
    for refused in denied {
        let refused = refused.unwrap_err();
        assert_eq!((refused.code(), word(&refused)), (Code::PermissionDenied, "denied"));
    }
    assert!(admin.get_config(as_user(&root, v1::GetConfigRequest {})).await.is_ok());
}

#[tokio::test]
async fn administration_has_its_entry_in_health_and_in_reflection() {
    let (caribou, _fake, _) = serving(Setup::new()).await;
    let mut health = HealthClient::new(channel(&caribou).await);
    let request = HealthCheckRequest { service: SERVICE_NAME.to_owned() };
    let checked = tokio::time::timeout(Duration::from_secs(20), health.check(request)).await.unwrap();
    assert_eq!(checked.unwrap().into_inner().status(), ServingStatus::Serving);
}
