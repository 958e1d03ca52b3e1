//! A replica that is started with the very settings and variables the chart gives to its pods: over SQLite, and two of
//! them over a real PostgreSQL and Redis. Only addresses and folders are this machine's.

use std::time::Duration;

use caribou_tests::{Caribou, Postgres, Redis, Setup, eventually};
use serde_json::Value;

use crate::chart::{Rendered, example, items};

/// How long a start or a command may take on a loaded machine.
const SOON: Duration = Duration::from_secs(60);

/// What this machine decides: where to listen, and where files lie.
const OF_MACHINE: [(&str, Option<&str>); 8] = [
    // Nobody calls it there; an address of this machine alone would be refused.
    ("CARIBOU_CLUSTER_ADVERTISE", Some("10.0.0.7:8751")),
    ("CARIBOU_CLUSTER_LISTEN", Some("127.0.0.1:0")),
    ("CARIBOU_CONFIG", None),
    ("CARIBOU_DATA_DIR", None),
    ("CARIBOU_EXTENSIONS_CONFIG_PATH", None),
    ("CARIBOU_GRPC_LISTEN", Some("127.0.0.1:0")),
    ("CARIBOU_LISTEN", None),
    ("POD_IP", None),
];

/// A replica as a pod of this release would be; `secret` tells what the operator's Secrets hold.
fn pod(rendered: &Rendered, secret: impl Fn(&str) -> String) -> Setup {
    let map = rendered.one("ConfigMap", "demo-caribou-settings");
    let mut setup = Setup::new().settings(map["data"]["config.yaml"].as_str().unwrap());
    for variable in items(&rendered.replica()["containers"][0]["env"]) {
        let name = variable["name"].as_str().unwrap();
        let here = OF_MACHINE.iter().find(|(of_machine, _)| *of_machine == name);
        let value = match here {
            Some((_, None)) => continue,
            Some((_, Some(value))) => (*value).to_owned(),
            None if variable["valueFrom"].get("fieldRef").is_some() => "demo-caribou-0".to_owned(),
            None => variable["value"].as_str().map_or_else(|| secret(name), str::to_owned),
        };
        setup = setup.variable(name, &value);
    }
    setup
}

/// A key that `caribou keys create` makes, as the notes of a release say.
async fn key(setup: &Setup) -> String {
    let creating = setup.command(&["keys", "create", "--user", "ops", "--role", "admin"]).output();
    let made = tokio::time::timeout(SOON, creating).await.expect("a key is made in time").unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8_lossy(&made.stdout).trim().to_owned()
}

/// The probes of the chart find the replica well.
async fn is_well(replica: &Caribou, rendered: &Rendered) {
    let container: &Value = &rendered.replica()["containers"][0];
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        let path = container[probe]["httpGet"]["path"].as_str().unwrap();
        let well = eventually(SOON, path, async || Some(replica.get(path).await).filter(|answer| answer.status == 200));
        well.await;
    }
    assert!(replica.get("/metrics").await.body.contains("caribou_"));
}

/// Who shows the key is served, and who shows none is not.
async fn tells_callers_apart(replica: &Caribou, key: &str) {
    assert_eq!(replica.get("/api/mcp/tools").await.status, 401);
    let asked = replica.request("GET", "/api/mcp/tools").bearer_auth(key);
    assert_eq!(replica.send(asked).await.status, 200);
}

#[tokio::test]
async fn an_embedded_replica_starts_with_what_the_chart_gives_it() {
    let rendered = example("embedded");
    let setup = pod(&rendered, |name| panic!("{name} is in no Secret of an embedded replica"));
    let key = key(&setup).await;
    let replica = setup.start().await;
    is_well(&replica, &rendered).await;
    tells_callers_apart(&replica, &key).await;
    let (status, _home) = replica.stop().await;
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn replicas_of_a_cluster_start_with_what_the_chart_gives_them() {
    let (postgres, redis) = (Postgres::start().await, Redis::start().await);
    let rendered = example("cluster");
    let secret = |name: &str| match name {
        "CARIBOU_CLUSTER_SECRET" => "0123456789abcdef0123456789abcdef".to_owned(),
        "CARIBOU_CREDENTIALS_KEY" => "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=".to_owned(),
        "CARIBOU_DATABASE_URL" => postgres.url("postgres"),
        "CARIBOU_REDIS_URL" => redis.url(),
        name => panic!("{name}: the example names no such secret"),
    };
    let (first, second) = (pod(&rendered, secret), pod(&rendered, secret));
    // Both at once, as the pods of a release do.
    let migrating = async |setup: &Setup| {
        let done = tokio::time::timeout(SOON, setup.command(&["migrate"]).output()).await.expect("it ends").unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    tokio::join!(migrating(&first), migrating(&second));
    let key = key(&first).await;
    let (first, second) = tokio::join!(first.start(), second.start());
    for replica in [&first, &second] {
        is_well(replica, &rendered).await;
        tells_callers_apart(replica, &key).await;
    }
    for replica in [first, second] {
        let (status, _home) = replica.stop().await;
        assert!(status.success(), "{status}");
    }
}
