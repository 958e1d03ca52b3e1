//! Visits that servers send legacy clients on, and their ends: URL elicitation (mcp.md §1.3, 14.3).

use caribou_tests::{Caribou, Postgres, Setup, StdioFake, know_one_another};
use serde_json::{Value, json};

use super::client::{Session, Stream, messages, post, request};

/// A server that sends its caller somewhere: in the middle of `ask`, and before it does anything on `need`. Of each it
/// says that it has ended, of another one too.
fn sending(setup: &Setup) -> StdioFake {
    let visit = |name: &str| json!({ "mode": "url", "elicitationId": name, "url": "https://a.test/", "message": "go" });
    let ended = |name: &str| {
        json!({ "send": { "jsonrpc": "2.0", "method": "notifications/elicitation/complete",
            "params": { "elicitationId": name } } })
    };
    let ask =
        json!({ "send": { "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": visit("v-1") } });
    let required = json!({ "code": -32_042, "message": "go first", "data": { "elicitations": [visit("v-2")] } });
    let calls = json!({
        "ask": [ask, { "until_file": setup.home().join("went") }, ended("never"), ended("v-1"), { "text": "done" }],
        "need": [{ "error": required }, { "until_file": setup.home().join("went too") },
            ended("v-2"), ended("v-2"), ended("v-1")],
        "last": [{ "text": "done" }],
    });
    StdioFake::new(setup.home(), "fake", json!({ "calls": calls }))
}

async fn open<'c>(caribou: &'c Caribou) -> Session<'c> {
    Session::open_as(caribou, "/mcp", None, json!({ "elicitation": { "url": {} } })).await
}

/// The visit that a standing stream tells of next.
async fn visited(stream: &mut Stream) -> Value {
    loop {
        let message = stream.next().await.expect("the stream is open");
        if message["method"] == "notifications/elicitation/complete" {
            return message["params"].clone();
        }
    }
}

#[tokio::test]
async fn the_end_of_a_visit_is_told_to_the_client_that_was_sent_on_it_at_whichever_replica_it_listens() {
    // mcp.md 14.3, URL elicitation; 14.6; invariant P1.
    let database = Postgres::start().await;
    let url = database.url("postgres");
    let migrated = Setup::new().variable("CARIBOU_DATABASE_URL", &url).command(&["migrate"]).output().await.unwrap();
    assert!(migrated.status.success(), "{migrated:?}");
    let first = Setup::new();
    let (went, went_too) = (first.home().join("went"), first.home().join("went too"));
    let fake = sending(&first);
    let replica = async |setup: Setup| {
        let setup = setup.variable("CARIBOU_DATABASE_URL", &url).variable("CARIBOU_CLUSTER_LISTEN", "127.0.0.1:0");
        let setup = setup.variable("CARIBOU_CLUSTER_SECRET", "0123456789abcdef0123456789abcdef");
        let caribou = setup.server("fake", fake.entry()).start().await;
        assert_eq!(caribou.tool_names().await, ["fake_ask", "fake_last", "fake_need"]);
        caribou
    };
    let replicas = [replica(first).await, replica(Setup::new()).await];
    know_one_another(&replicas).await;
    let session = open(&replicas[0]).await;
    let other = open(&replicas[0]).await;
    let mut standing = session.at(&replicas[1]).listen().await;
    let mut others = other.listen().await;
    let body = request(9, "tools/call", &json!({ "name": "fake_ask", "arguments": {} }));
    let mut call = Stream::of(session.with(post(&replicas[0], "/mcp", body))).await;
    let asked = call.next().await.unwrap();
    assert_eq!((&asked["method"], &asked["params"]["elicitationId"]), (&json!("elicitation/create"), &json!("v-1")));
    let answered = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept" } });
    assert_eq!(session.send(answered.to_string()).await.status, 202);
    std::fs::write(&went, "").unwrap();
    assert_eq!(visited(&mut standing).await, json!({ "elicitationId": "v-1" }), "and of none that was never asked for");
    assert_eq!(call.next().await.unwrap()["result"]["content"][0]["text"], "done");

    let needed = messages(&session.call("fake_need", json!({})).await).pop().unwrap()["error"].clone();
    assert_eq!(
        (&needed["code"], &needed["data"]["elicitations"][0]["elicitationId"]),
        (&json!(-32_042), &json!("v-2"))
    );
    std::fs::write(&went_too, "").unwrap();
    assert_eq!(visited(&mut standing).await, json!({ "elicitationId": "v-2" }));
    session.call("fake_last", json!({})).await;
    for (session, stream) in [(&session, &mut standing), (&other, &mut others)] {
        assert_eq!(session.end().await.status, 200);
        while let Some(message) = stream.next().await {
            assert_ne!(message["method"], "notifications/elicitation/complete", "once, and to nobody else");
        }
    }
}
