//! Personal connections do not reach private networks, whatever way leads there (architecture.md §9).

use caribou_ports::mcp::OpenError;
use serde_json::json;

use super::fake::{Client, Fake, call, empty, legacy, result, with};

async fn server() -> Fake {
    Fake::start(|seen| match seen.rpc() {
        "tools/call" => result(seen, json!({"content": []})),
        _ => legacy(seen).unwrap(),
    })
    .await
}

#[tokio::test]
async fn an_address_of_this_machine_is_not_asked_however_it_is_written_and_whatever_the_transport() {
    let fake = server().await;
    let port = fake.origin.rsplit(':').next().unwrap().to_owned();
    for host in ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"] {
        for transport in ["http", "sse"] {
            let url = format!("http://{host}:{port}/mcp");
            let refused = Client::personal(&[]).open_with(&url, json!({"type": transport})).await.err().unwrap();
            assert!(matches!(&refused, OpenError::Denied(why) if why.contains("network.allow_cidrs")), "{refused}");
            assert!(!refused.to_string().contains(host), "{refused}");
        }
    }
    assert!(fake.seen().is_empty());
}

#[tokio::test]
async fn what_the_operator_lists_is_asked() {
    let fake = server().await;
    let port = fake.origin.rsplit(':').next().unwrap();
    for host in ["127.0.0.1", "localhost"] {
        let client = Client::personal(&["127.0.0.0/8"]);
        let session = client.open(&format!("http://{host}:{port}/mcp")).await.unwrap();
        call(&session, "echo").await.unwrap();
    }
    let deployment = Client::new().open(&fake.url()).await.unwrap();
    call(&deployment, "echo").await.unwrap();
}

#[tokio::test]
async fn a_redirect_and_a_message_url_lead_nowhere_else() {
    let fake = Fake::start(|_| with(empty(307), "location", "http://127.0.0.2:1/mcp")).await;
    let client = Client::personal(&["127.0.0.1"]);
    let allowed = json!({"allowed_redirect_origins": ["http://127.0.0.2:1"]});
    let refused = client.open_with(&fake.url(), allowed).await.err().unwrap();
    assert!(matches!(&refused, OpenError::Denied(why) if why.contains("network.allow_cidrs")), "{refused}");
}
