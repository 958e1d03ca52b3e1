//! Clients of the revision of 2026: every request stands for itself (mcp.md §2, §3.1).

use caribou_tests::{Answer, Caribou, Setup, StdioFake, eventually};
use serde_json::{Value, json};

use super::client::{MODERN, SOON, Stream, appears, messages, modern, post, request};

fn with(setup: Setup, script: Value) -> (Setup, StdioFake) {
    let fake = StdioFake::new(setup.home(), "fake", script);
    let entry = fake.entry();
    (setup.server("fake", entry), fake)
}

async fn started() -> Caribou {
    let script = json!({ "calls": { "count": [{ "text": "$N" }], "loud": [{ "progress": 1 }, { "text": "done" }] } });
    with(Setup::new(), script).0.start().await
}

async fn ask(caribou: &Caribou, path: &str, method: &str, params: Value) -> Answer {
    caribou.send(modern(caribou, path, method, params)).await
}

#[tokio::test]
async fn a_request_needs_no_session_and_every_result_says_what_it_is() {
    // mcp.md §17, S5, S6, S7 and S9.
    let caribou = started().await;
    let discovered = ask(&caribou, "/mcp", "server/discover", json!({})).await.json()["result"].clone();
    assert_eq!(discovered["supportedVersions"], json!([MODERN]));
    let listed = ask(&caribou, "/mcp", "tools/list", json!({})).await.json()["result"].clone();
    for result in [&discovered, &listed] {
        assert_eq!((&result["resultType"], &result["cacheScope"]), (&"complete".into(), &"private".into()));
        assert!(result["ttlMs"].is_u64(), "{result}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "caribou");
    }
    assert_eq!(listed["tools"][0]["name"], "fake_count");
    let call = modern(&caribou, "/mcp", "tools/call", json!({ "name": "fake_count" })).header("mcp-session-id", "mine");
    let response = call.send().await.unwrap();
    assert!(!response.headers().contains_key("mcp-session-id"));
    let called = Answer::read(response).await.json()["result"].clone();
    assert_eq!((&called["resultType"], &called["content"][0]["text"]), (&"complete".into(), &"1".into()));
    assert!(called.get("ttlMs").is_none(), "{called}");
    let again = ask(&caribou, "/mcp/fake", "tools/call", json!({ "name": "count" })).await;
    assert_eq!(again.json()["result"]["content"][0]["text"], "2", "the caller's own thread");
}

#[tokio::test]
async fn what_a_request_lacks_is_told_by_status_and_code() {
    // mcp.md §17, S1 to S4.
    let caribou = started().await;
    let code = async |request: reqwest::RequestBuilder| {
        let answer = caribou.send(request).await;
        (answer.status, answer.json()["error"]["code"].as_i64().unwrap())
    };
    let bare = |version: &str| {
        let request = post(&caribou, "/mcp", request(1, "tools/list", &json!({})));
        request.header("mcp-protocol-version", version.to_owned()).header("mcp-method", "tools/list")
    };
    assert_eq!(code(bare(MODERN)).await, (400, -32_602));
    let meta = |version: &str| {
        json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {} } })
    };
    let unsupported = post(&caribou, "/mcp", request(1, "tools/list", &meta("2031-01-01")));
    let unsupported = caribou.send(unsupported.header("mcp-protocol-version", "2031-01-01")).await;
    let error = unsupported.json()["error"].clone();
    assert_eq!((unsupported.status, &error["code"]), (400, &(-32_022).into()));
    assert_eq!(error["data"], json!({ "supported": [MODERN], "requested": "2031-01-01" }));
    let headless = post(&caribou, "/mcp", request(1, "tools/list", &meta(MODERN)));
    assert_eq!(code(headless).await, (400, -32_020));
    let other = post(&caribou, "/mcp", request(1, "tools/list", &meta(MODERN)));
    let other = other.header("mcp-protocol-version", MODERN).header("mcp-method", "tools/call");
    assert_eq!(code(other).await, (400, -32_020));
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "prompts/list", "tools/fly"] {
        assert_eq!(code(modern(&caribou, "/mcp", method, json!({}))).await, (404, -32_601), "{method}");
    }
    assert_eq!(code(modern(&caribou, "/mcp", "tools/call", json!({ "name": "nothing" }))).await, (400, -32_602));
    let page = modern(&caribou, "/mcp", "tools/list", json!({ "cursor": "made up" }));
    assert_eq!(code(page).await, (400, -32_602));
}

#[tokio::test]
async fn arguments_that_a_tool_wants_mirrored_are_compared_with_their_headers() {
    // mcp.md §17, S3.
    let tool = json!({ "name": "t", "inputSchema": { "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "limit": { "type": "integer", "x-mcp-header": "Limit" } } } });
    let caribou = with(Setup::new(), json!({ "tools": [tool] })).0.start().await;
    assert_eq!(caribou.tool_names().await, ["fake_t"]);
    let call = |region: &str, limit: &str| {
        let arguments = json!({ "region": "süd", "limit": 42 });
        let call = modern(&caribou, "/mcp", "tools/call", json!({ "name": "fake_t", "arguments": arguments }));
        call.header("mcp-param-region", region.to_owned()).header("mcp-param-limit", limit.to_owned())
    };
    assert_eq!(caribou.send(call("=?base64?c8O8ZA==?=", "42.0")).await.status, 200);
    for (region, limit) in [("nord", "42"), ("=?base64?%%?=", "42"), ("=?base64?c8O8ZA==?=", "41")] {
        let refused = caribou.send(call(region, limit)).await;
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &(-32_020).into()), "{region} {limit}");
    }
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_its_call() {
    // mcp.md §17, S12.
    let setup = Setup::new();
    let begun = setup.home().join("begun");
    let (setup, fake) = with(setup, json!({ "calls": { "hang": [{ "touch": begun }, "hang"] } }));
    let caribou = setup.start().await;
    {
        let call = ask(&caribou, "/mcp", "tools/call", json!({ "name": "fake_hang" }));
        tokio::select! {
            answer = call => panic!("answered: {answer:?}"),
            () = appears(&begun) => {}
        }
    }
    eventually(SOON, "the server hears of it", async || {
        (!fake.log().received("notifications/cancelled").is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn progress_comes_with_the_clients_token_and_log_messages_only_when_asked_for() {
    // mcp.md §17, S11 and S17.
    let caribou = started().await;
    let call = json!({ "name": "fake_loud", "_meta": { "progressToken": 5 } });
    let told = messages(&ask(&caribou, "/mcp", "tools/call", call).await);
    assert_eq!(told[0]["params"], json!({ "progressToken": 5, "progress": 1, "total": 100 }));
    assert_eq!(told[1]["result"]["content"][0]["text"], "done");
    let silent = ask(&caribou, "/mcp", "tools/call", json!({ "name": "fake_loud" })).await;
    assert_eq!((silent.content_type.as_str(), messages(&silent).len()), ("application/json", 1));
}

#[tokio::test]
async fn a_subscription_is_acknowledged_first_and_names_itself_in_every_message() {
    // mcp.md §17, S16.
    let setup = Setup::new();
    let script = json!({ "calls": { "change": [
        { "send": { "jsonrpc": "2.0", "method": "notifications/tools/list_changed" } },
        { "text": "changed" },
    ] } });
    let caribou = with(setup, script).0.start().await;
    assert_eq!(caribou.tool_names().await, ["fake_change"]);
    let wanted = json!({ "notifications": { "toolsListChanged": true, "promptsListChanged": true } });
    let mut stream = Stream::of(modern(&caribou, "/mcp", "subscriptions/listen", wanted)).await;
    let first = stream.next().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], json!({ "toolsListChanged": true }), "what is granted");
    ask(&caribou, "/mcp", "tools/call", json!({ "name": "fake_change" })).await;
    let told = stream.next().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    for message in [&first, &told] {
        assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7, "{message}");
    }
    let (status, _) = caribou.stop().await;
    assert!(status.success());
    let mut last = None;
    while let Some(message) = stream.next().await {
        last = Some(message);
    }
    let last = last.unwrap();
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&7.into(), &"complete".into()), "{last}");
}

#[tokio::test]
async fn a_question_of_a_modern_server_reaches_its_client_and_only_that_client_answers() {
    // mcp.md §4 and §17, S14, S15 and B6; invariant P1.
    let question = json!({ "method": "elicitation/create", "params": { "message": "Who?" } });
    let asking =
        json!({ "resultType": "input_required", "inputRequests": { "who": question }, "requestState": "st\u{e4}te" });
    let calls = json!({ "ask": [{ "turns": [[{ "result": asking }], [{ "text": "$PARAMS" }]] }] });
    let (setup, fake) = with(Setup::new(), json!({ "eras": "modern", "calls": calls }));
    let caribou = setup.start().await;
    let capable = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {}, "extensions": {} } });
    let asked = ask(&caribou, "/mcp", "tools/call", json!({ "name": "fake_ask", "_meta": capable })).await;
    let asked = asked.json()["result"].clone();
    assert_eq!(
        (&asked["resultType"], &asked["inputRequests"]["who"]),
        (&"input_required".into(), &question),
        "{asked}"
    );
    let declared = fake.log().received("tools/call")[0].message()["params"]["_meta"].clone();
    let declared = &declared["io.modelcontextprotocol/clientCapabilities"];
    assert!(declared["elicitation"].is_object() && declared.get("sampling").is_none(), "{declared}");

    let state = asked["requestState"].as_str().unwrap().to_owned();
    let answers = json!({ "who": { "action": "accept", "content": { "name": "ann" } } });
    let again = |path: &'static str, name: &str, state: String| {
        let params = json!({ "name": name, "_meta": capable, "requestState": state, "inputResponses": answers });
        modern(&caribou, path, "tools/call", params)
    };
    let tampered = state.replace("st", "sT");
    for refused in [again("/mcp", "fake_ask", tampered), again("/mcp/fake", "ask", state.clone())] {
        let refused = caribou.send(refused).await;
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &(-32_602).into()), "{refused:?}");
    }
    assert_eq!(fake.log().received("tools/call").len(), 1, "nothing of it reached the server");
    let done = caribou.send(again("/mcp", "fake_ask", state)).await.json();
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    let sent = fake.log().received("tools/call")[1].message()["params"].clone();
    assert_eq!((&sent["requestState"], &sent["inputResponses"]), (&"st\u{e4}te".into(), &answers), "{sent}");
}
