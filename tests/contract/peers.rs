//! Replicas that share sessions: how they are configured, and that a thread has one session whichever replica is asked
//! (durability.md 2.1 and §6).

use std::time::Duration;

use caribou_proto::peer::v1;
use caribou_proto::peer::v1::session_service_client::SessionServiceClient;
use caribou_tests::{Caribou, Postgres, Setup, StdioFake, eventually, know_one_another};
use serde_json::{Value, json};
use tonic::transport::Endpoint;
use tonic::{Code, Request};

const SOON: Duration = Duration::from_secs(30);

const SECRET: &str = "0123456789abcdef-hunter2-abcdef0";

/// What `serve` says when it does not start.
async fn refusal(variables: &[(&str, &str)]) -> String {
    let setup = variables.iter().fold(Setup::new(), |setup, (name, value)| setup.variable(name, value));
    let output = setup.command(&["serve", "--listen", "127.0.0.1:0"]).output();
    let output = tokio::time::timeout(SOON, output).await.unwrap().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn sessions_are_shared_only_between_those_who_know_one_another_over_postgresql() {
    let (listen, secret) = (("CARIBOU_CLUSTER_LISTEN", "127.0.0.1:0"), ("CARIBOU_CLUSTER_SECRET", SECRET));
    let embedded = refusal(&[listen, secret]).await;
    assert!(embedded.contains("cluster.listen") && embedded.contains("PostgreSQL"), "{embedded}");
    let strangers = refusal(&[listen]).await;
    assert!(strangers.contains("$.cluster.secret"), "{strangers}");
    let short = refusal(&[listen, ("CARIBOU_CLUSTER_SECRET", "hunter2")]).await;
    assert!(short.contains("CARIBOU_CLUSTER_SECRET") && short.contains("32 characters"), "{short}");
    assert!(!short.contains("hunter2"), "{short}");
    let everywhere = refusal(&[("CARIBOU_CLUSTER_LISTEN", "0.0.0.0:0"), secret]).await;
    for needed in ["$.cluster.tls.cert_file", "allow_plaintext", "$.cluster.advertise"] {
        assert!(everywhere.contains(needed), "{everywhere}");
    }
    let file = ("CARIBOU_CLUSTER_TLS_CERT_FILE", "/nowhere/peer.crt");
    let half = refusal(&[listen, file]).await;
    assert!(half.contains("$.cluster.tls.key_file") && half.contains("$.cluster.tls.ca_file"), "{half}");
}

/// The address at which others reach the replica that is asked.
async fn address(caribou: &Caribou) -> (String, String) {
    let replicas = eventually(SOON, "itself among the replicas", async || {
        let replicas = caribou.get("/api/replicas").await.json();
        let ours = |replica: &&Value| replica["is_this"] == true;
        replicas["replicas"].as_array()?.iter().find(ours).cloned()
    });
    let ours = replicas.await;
    (ours["boot"].as_str().unwrap().to_owned(), ours["address"].as_str().unwrap().to_owned())
}

async fn hello(address: &str, secret: &str, to_boot: &str) -> Result<v1::HelloResponse, Code> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut asking = SessionServiceClient::new(endpoint.connect().await.unwrap());
    let mut request = Request::new(v1::HelloRequest { to_boot: to_boot.to_owned(), protocol: 1, ..Default::default() });
    request.metadata_mut().insert("authorization", format!("Bearer {secret}").parse().unwrap());
    asking.hello(request).await.map(tonic::Response::into_inner).map_err(|status| status.code())
}

#[tokio::test]
async fn a_thread_has_one_session_whichever_replica_is_asked() {
    let database = Postgres::start().await;
    let url = database.url("postgres");
    let migrated = Setup::new().variable("CARIBOU_DATABASE_URL", &url).command(&["migrate"]).output().await.unwrap();
    assert!(migrated.status.success(), "{migrated:?}");
    let first = Setup::new();
    let fake = StdioFake::new(first.home(), "fake", json!({ "calls": { "bump": [{ "text": "$N" }] } }));
    let replica = async |setup: Setup| {
        let setup = setup.variable("CARIBOU_DATABASE_URL", &url).variable("CARIBOU_CLUSTER_LISTEN", "127.0.0.1:0");
        let setup = setup.variable("CARIBOU_CLUSTER_SECRET", SECRET).variable("RUST_LOG", "debug");
        setup.server("fake", fake.entry()).start().await
    };
    let replicas = [replica(first).await, replica(Setup::new()).await];
    know_one_another(&replicas).await;
    let (boot, peer) = address(&replicas[0]).await;
    assert_eq!(hello(&peer, SECRET, &boot).await.unwrap().boot, boot);
    assert_eq!(hello(&peer, SECRET, "another life").await, Err(Code::FailedPrecondition));
    assert_eq!(hello(&peer, "wrong", &boot).await, Err(Code::Unauthenticated));
    address(&replicas[1]).await;

    for n in 1..=6 {
        let answer = replicas[n % 2].call_in("kitchen", "fake_bump", json!({})).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let text = &answer.json()["result"]["content"][0]["text"];
        assert_eq!(*text, n.to_string(), "one child counts them all: {answer:?}");
    }
    for replica in &replicas {
        assert!(!replica.log().contains("hunter2"), "the secret is in a log");
    }
}
