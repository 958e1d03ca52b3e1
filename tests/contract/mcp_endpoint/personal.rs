//! Changes of servers that a user brought: told to that user's clients, and to nobody else's (mcp.md §5, 14.3).

use caribou_tests::{Answer, Caribou, HttpFake, Postgres, Setup, know_one_another};
use serde_json::{Value, json};

use super::client::{Session, Stream};
use super::identity::key_of;

const LISTS: [&str; 3] = ["prompts", "resources", "tools"];

/// A server whose tool `touch` tells that its lists of prompts and tools are others.
async fn telling() -> HttpFake {
    let info = json!({ "name": "fake", "version": "0" });
    let told = json!({ "listChanged": true });
    let greeting = json!({ "protocolVersion": "2025-11-25", "serverInfo": info,
        "capabilities": { "tools": told, "prompts": told } });
    let send =
        |kind: &str| json!({ "send": { "jsonrpc": "2.0", "method": format!("notifications/{kind}/list_changed") } });
    let script = json!({ "on": { "initialize": [{ "result": greeting }] }, "http": { "answers": "sse" },
        "calls": { "touch": [send("prompts"), send("tools"), { "text": "told" }] } });
    HttpFake::start(script).await
}

/// Waits until the stream has told of each of these lists.
async fn told(stream: &mut Stream, lists: &[&str]) {
    let mut left: Vec<String> = lists.iter().map(|list| format!("notifications/{list}/list_changed")).collect();
    while !left.is_empty() {
        let message = stream.next().await.expect("the stream is open");
        left.retain(|method| message["method"] != *method);
    }
}

/// Puts the connection `mine` of this user.
async fn put(caribou: &Caribou, user: &str, key: Option<&str>, entry: &Value) -> Answer {
    let request = caribou.request("PUT", &format!("/api/users/{user}/mcp/connections/mine"));
    let request = request.header("content-type", "application/json");
    let request = key.into_iter().fold(request, |request, key| request.bearer_auth(key));
    caribou.send(request.body(entry.to_string())).await
}

fn setup() -> Setup {
    Setup::new().variable("CARIBOU_NETWORK_ALLOW_CIDRS", "127.0.0.0/8")
}

async fn tools(session: &Session<'_>) -> Vec<Value> {
    let listed = session.ask("tools/list", json!({})).await.json()["result"]["tools"].clone();
    listed.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect()
}

#[tokio::test]
async fn what_changes_among_a_users_own_servers_is_told_to_its_clients_alone() {
    // Invariant P1.
    let setup = setup().variable("CARIBOU_AUTH_MODE", "api_keys");
    let (ann, bob) = (key_of(&setup, &["--user", "ann"]).await, key_of(&setup, &["--user", "bob"]).await);
    let (caribou, fake) = (setup.start().await, telling().await);
    let at_anns = Session::open_with(&caribou, "/mcp", Some(&ann)).await;
    let at_bobs = Session::open_with(&caribou, "/mcp", Some(&bob)).await;
    let (mut anns, mut bobs) = (at_anns.listen().await, at_bobs.listen().await);
    let made = put(&caribou, "ann", Some(&ann), &fake.entry()).await;
    assert_eq!(made.status, 200, "{made:?}");
    told(&mut anns, &LISTS).await;
    assert_eq!(tools(&at_anns).await, ["mine_touch"]);
    let called = at_anns.call("mine_touch", json!({})).await;
    assert_eq!(called.status, 200, "{called:?}");
    told(&mut anns, &["prompts", "tools"]).await;
    let gone = caribou.request("DELETE", "/api/users/ann/mcp/connections/mine").bearer_auth(&ann);
    assert_eq!(caribou.send(gone).await.status, 204);
    told(&mut anns, &LISTS).await;
    assert_eq!(tools(&at_anns).await, Vec::<Value>::new());
    assert_eq!(at_bobs.end().await.status, 200);
    assert_eq!(bobs.next().await, None, "nothing of it is anybody else's");
}

#[tokio::test]
async fn a_change_at_another_replica_is_told_and_seen_at_once() {
    // mcp.md 14.6.
    let database = Postgres::start().await;
    let url = database.url("postgres");
    let migrated = Setup::new().variable("CARIBOU_DATABASE_URL", &url).command(&["migrate"]).output().await.unwrap();
    assert!(migrated.status.success(), "{migrated:?}");
    let key = Setup::new().command(&["keys", "generate"]).output().await.unwrap();
    let key = String::from_utf8(key.stdout).unwrap().trim_end().to_owned();
    let replica = async || {
        let setup = setup().variable("CARIBOU_DATABASE_URL", &url).variable("CARIBOU_CLUSTER_LISTEN", "127.0.0.1:0");
        let setup = setup.variable("CARIBOU_CLUSTER_SECRET", "0123456789abcdef0123456789abcdef");
        setup.variable("CARIBOU_CREDENTIALS_KEY", &key).start().await
    };
    let (replicas, fake) = ([replica().await, replica().await], telling().await);
    know_one_another(&replicas).await;
    let [here, there] = replicas;
    let session = Session::open_as(&there, "/mcp", None, json!({})).await;
    let _ = tools(&session).await;
    let mut stream = session.listen().await;
    let made = put(&here, "default", None, &fake.entry()).await;
    assert_eq!(made.status, 200, "{made:?}");
    told(&mut stream, &LISTS).await;
    assert_eq!(tools(&session).await, ["mine_touch"]);
    let called = session.at(&here).call("mine_touch", json!({})).await;
    assert_eq!(called.status, 200, "{called:?}");
    told(&mut stream, &["prompts", "tools"]).await;
}
