//! Clients of the revisions before 2026: a session, then requests in it (mcp.md §3.3).

use caribou_tests::{Answer, Setup, StdioFake};
use serde_json::{Value, json};

use super::client::{SOON, Session, Stream, appears, messages, post, request};

/// A server whose state lives in its process.
fn counting(setup: Setup) -> Setup {
    let told = json!({ "level": "info", "data": "moss" });
    let message = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": told });
    let script = json!({ "calls": {
        "count": [{ "text": "$N" }],
        "echo": ["default"],
        "loud": [
            { "send": message },
            { "progress": 1 },
            { "progress": 2 },
            { "text": "done" },
        ],
        "fails": [{ "error": { "code": -5, "message": "no", "data": { "b": 1.0 } } }],
    } });
    let fake = StdioFake::new(setup.home(), "fake", script);
    setup.server("fake", fake.entry())
}

fn text(answer: &Answer) -> String {
    let last = messages(answer).pop().unwrap();
    last["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer:?}")).to_owned()
}

#[tokio::test]
async fn a_session_is_opened_used_and_ended() {
    // mcp.md §17, S19 and S9.
    let caribou = counting(Setup::new()).start().await;
    let session = Session::open(&caribou, "/mcp").await;
    assert_eq!(session.greeting["protocolVersion"], "2025-11-25");
    assert_eq!(session.greeting["serverInfo"]["name"], "caribou");
    assert!(session.greeting["capabilities"]["tools"].is_object(), "{}", session.greeting);
    assert_eq!(session.ask("ping", json!({})).await.json()["result"], json!({}));
    let listed = session.ask("tools/list", json!({})).await.json();
    let names: Vec<&str> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["fake_count", "fake_echo", "fake_fails", "fake_loud"]);
    assert!(listed["result"].get("resultType").is_none() && listed["result"].get("ttlMs").is_none(), "S6");
    assert_eq!(text(&session.call("fake_count", json!({})).await), "1");
    assert_eq!(text(&session.call("fake_count", json!({})).await), "2");

    let refused = caribou.send(post(&caribou, "/mcp", request(1, "tools/list", &json!({})))).await;
    assert_eq!(refused.status, 400, "without a session: {refused:?}");
    let elsewhere = Session { path: "/mcp/fake".to_owned(), ..Session::open(&caribou, "/mcp").await };
    assert_eq!(elsewhere.ask("ping", json!({})).await.status, 404, "a session is of its place");
    assert_eq!(session.end().await.status, 200);
    assert_eq!(session.ask("ping", json!({})).await.status, 404);
    assert_eq!(session.end().await.status, 404);
}

#[tokio::test]
async fn each_session_is_a_thread_of_its_own_unless_the_client_names_one() {
    // Who names no thread shares nothing with others that do not.
    let caribou = counting(Setup::new()).start().await;
    let (one, two) = (Session::open(&caribou, "/mcp").await, Session::open(&caribou, "/mcp").await);
    assert_eq!(text(&one.call("fake_count", json!({})).await), "1");
    assert_eq!(text(&two.call("fake_count", json!({})).await), "1");
    let in_thread = |session: &Session<'_>| {
        let body = request(1, "tools/call", &json!({ "name": "fake_count" }));
        session.with(post(&caribou, "/mcp", body)).header("x-caribou-thread", "t")
    };
    assert_eq!(text(&caribou.send(in_thread(&one)).await), "1");
    assert_eq!(text(&caribou.send(in_thread(&two)).await), "2");
    let by_meta = json!({ "name": "fake_count", "_meta": { "io.caribou/thread": "t" } });
    assert_eq!(text(&two.ask("tools/call", by_meta).await), "3");
    assert_eq!(caribou.call_in("t", "fake_count", json!({})).await.text(), "4", "the same thread by every door");
    let odd = json!({ "name": "fake_count", "_meta": { "io.caribou/thread": "a b" } });
    assert_eq!(two.ask("tools/call", odd).await.json()["error"]["code"], -32_602);
}

#[tokio::test]
async fn one_server_is_shown_by_its_own_names() {
    let caribou = counting(Setup::new()).start().await;
    let session = Session::open(&caribou, "/mcp/fake").await;
    let listed = session.ask("tools/list", json!({})).await;
    assert!(listed.body.contains("\"name\":\"count\"") && !listed.body.contains("fake_"), "{listed:?}");
    assert_eq!(text(&session.call("count", json!({})).await), "1");
    let unknown = session.call("fake_count", json!({})).await.json();
    assert_eq!(unknown["error"]["code"], -32_602, "{unknown}");
    let nobody = post(&caribou, "/mcp/nobody", request(0, "initialize", &json!({ "protocolVersion": "2025-11-25" })));
    assert_eq!(caribou.send(nobody).await.json()["error"]["code"], -32_602);
}

#[tokio::test]
async fn arguments_results_and_errors_pass_byte_for_byte() {
    // Invariant W1; mcp.md §17, B2 and S18.
    let setup = Setup::new();
    let result = r#"{"z":1.0,"content":[{"type":"hologram","n":9223372036854775809}],"_meta":{"k":1.0}}"#;
    let error = r#"{"code":-5,"message":"no","data":{"b":1.0}}"#;
    let calls = format!(r#"{{"calls":{{"raw":[{{"result":{result}}}],"fails":[{{"error":{error}}}]}}}}"#);
    let fake = StdioFake::new(setup.home(), "fake", calls.as_str());
    let caribou = setup.server("fake", fake.entry()).start().await;
    let session = Session::open(&caribou, "/mcp").await;
    let arguments = r#"{"b":9223372036854775809,"a":1.0,"s":"\u00fc"}"#;
    let call = |name: &str| {
        let params = format!(r#"{{"arguments":{arguments},"name":"{name}"}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{params}}}"#)
    };
    let answer = session.send(call("fake_raw")).await;
    assert_eq!(answer.body, format!(r#"{{"jsonrpc":"2.0","id":"q","result":{result}}}"#));
    let sent = fake.log().received("tools/call").pop().unwrap();
    assert!(sent.raw.contains(arguments), "{sent:?}");
    let failed = session.send(call("fake_fails")).await;
    assert_eq!(failed.status, 200);
    assert!(failed.body.contains(r#""error":{"code":-5,"message":"no","data":{"b":1.0}}"#), "{failed:?}");
}

#[tokio::test]
async fn progress_and_log_messages_come_before_the_result_on_the_calls_own_stream() {
    // mcp.md §17, S17.
    let caribou = counting(Setup::new()).start().await;
    let session = Session::open(&caribou, "/mcp").await;
    let loud = |token: Value| json!({ "name": "fake_loud", "_meta": { "progressToken": token } });
    let told = messages(&session.ask("tools/call", loud("mine".into())).await);
    let methods: Vec<_> = told.iter().filter_map(|message| message["method"].as_str()).collect();
    assert_eq!(methods, ["notifications/message", "notifications/progress", "notifications/progress"], "{told:?}");
    assert_eq!(told[1]["params"]["progressToken"], "mine");
    assert_eq!(told[3]["result"]["content"][0]["text"], "done");
    assert_eq!(session.ask("logging/setLevel", json!({ "level": "warning" })).await.json()["result"], json!({}));
    let told = messages(&session.ask("tools/call", loud(5.into())).await);
    assert_eq!(told.len(), 3, "the level is remembered: {told:?}");
    let odd = session.ask("logging/setLevel", json!({ "level": "loud" })).await.json();
    assert_eq!(odd["error"]["code"], -32_602);
}

#[tokio::test]
async fn a_client_cancels_by_name_and_not_by_going_away() {
    // mcp.md §17, S12.
    let setup = Setup::new();
    let (begun, go, done) = (setup.home().join("begun"), setup.home().join("go"), setup.home().join("done"));
    let script = json!({ "calls": {
        "wait": [{ "touch": begun }, { "until_file": go }, { "touch": done }, { "text": "done" }],
        "hang": [{ "touch": setup.home().join("hangs") }, "hang"],
    } });
    let fake = StdioFake::new(setup.home(), "fake", script);
    let hangs = setup.home().join("hangs");
    let caribou = setup.server("fake", fake.entry()).start().await;
    let session = Session::open(&caribou, "/mcp").await;
    {
        let call = session.call("fake_wait", json!({}));
        tokio::select! {
            answer = call => panic!("answered: {answer:?}"),
            () = appears(&begun) => {}
        }
    }
    std::fs::write(&go, "").unwrap();
    appears(&done).await;
    assert!(fake.log().received("notifications/cancelled").is_empty(), "its client went away, and it went on");

    let hanging = session.send(request(40, "tools/call", &json!({ "name": "fake_hang" })));
    let cancel = async {
        appears(&hangs).await;
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 40 } });
        assert_eq!(session.send(cancelled.to_string()).await.status, 202);
    };
    let both = async { tokio::join!(hanging, cancel) };
    let (answer, ()) = tokio::time::timeout(SOON, both).await.expect("the call ends");
    assert!(!answer.body.contains("data:"), "nothing more is said of it: {answer:?}");
    caribou_tests::eventually(SOON, "the server hears of it", async || {
        (!fake.log().received("notifications/cancelled").is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_standing_stream_tells_of_changed_tools_and_ends_with_its_session() {
    let setup = Setup::new();
    let others = json!([{ "name": "other", "inputSchema": { "type": "object" } }]);
    let script = json!({ "calls": { "change": [
        { "tools": others },
        { "send": { "jsonrpc": "2.0", "method": "notifications/tools/list_changed" } },
        { "text": "changed" },
    ] } });
    let fake = StdioFake::new(setup.home(), "fake", script);
    let caribou = setup.server("fake", fake.entry()).start().await;
    let session = Session::open(&caribou, "/mcp").await;
    assert!(session.ask("tools/list", json!({})).await.body.contains("fake_change"));
    let mut older = session.listen().await;
    let mut stream = session.listen().await;
    assert_eq!(older.next().await, None, "a message goes on one stream");
    session.call("fake_change", json!({})).await;
    assert_eq!(stream.next().await.unwrap()["method"], "notifications/tools/list_changed");
    assert!(session.ask("tools/list", json!({})).await.body.contains("fake_other"));
    assert_eq!(session.end().await.status, 200);
    while stream.next().await.is_some() {}
}

#[tokio::test]
async fn what_is_no_request_is_refused_by_its_kind() {
    // mcp.md §17, S10 and S24; invariant B1.
    let caribou = counting(Setup::new()).settings("rest: {max_body_bytes: 2000}\n").start().await;
    let session = Session::open(&caribou, "/mcp").await;
    for (body, code) in [
        ("{\"jsonrpc\":", -32_700),
        ("[]", -32_600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32_600),
    ] {
        let refused = session.send(body.to_owned()).await;
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &code.into()), "{body}");
    }
    let unknown = session.ask("tools/fly", json!({})).await;
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (200, &(-32_601).into()));
    assert_eq!(session.ask("prompts/list", json!({})).await.json()["error"]["code"], -32_601, "not offered here");
    assert_eq!(session.call("fake_echo", json!({ "x": "y".repeat(2_000) })).await.status, 413);
    let form = caribou.request("POST", "/mcp").header("content-type", "text/plain").body("{}");
    assert_eq!(caribou.send(form).await.status, 415);
    let odd =
        session.with(post(&caribou, "/mcp", request(1, "ping", &json!({})))).header("mcp-protocol-version", "1.0");
    // Two headers of one name: the first counts, which is the agreed one.
    assert_eq!(caribou.send(odd).await.status, 200);
    assert_eq!(caribou.get("/mcp").await.status, 405, "a GET without a session");
    assert_eq!(caribou.send(caribou.request("PUT", "/mcp")).await.status, 405);
    for header in ["host", "origin"] {
        let foreign = session.with(post(&caribou, "/mcp", request(1, "ping", &json!({}))));
        let foreign = foreign.header(header, if header == "host" { "evil.example" } else { "https://evil.example" });
        assert_eq!(caribou.send(foreign).await.status, 403, "S8: {header}");
    }
}

#[tokio::test]
async fn a_question_of_a_modern_server_is_asked_on_the_calls_own_stream() {
    // mcp.md 14.3 and §17, B6 and S14.
    let setup = Setup::new();
    let question = json!({ "method": "elicitation/create", "params": { "message": "Who?" } });
    let asking = json!({ "resultType": "input_required", "inputRequests": { "who": question }, "requestState": "s" });
    let calls = json!({ "ask": [{ "turns": [[{ "result": asking }], [{ "text": "done" }]] }] });
    let fake = StdioFake::new(setup.home(), "fake", json!({ "eras": "modern", "calls": calls }));
    let caribou = setup.server("fake", fake.entry()).start().await;
    let session = Session::open(&caribou, "/mcp").await;
    let call = request(3, "tools/call", &json!({ "name": "fake_ask" }));
    let mut stream = Stream::of(session.with(post(&caribou, "/mcp", call))).await;
    let asked = stream.next().await.unwrap();
    assert_eq!((&asked["method"], &asked["params"]), (&question["method"], &question["params"]), "{asked}");
    let declared = fake.log().received("tools/call")[0].message()["params"]["_meta"].clone();
    let declared = &declared["io.modelcontextprotocol/clientCapabilities"];
    assert!(declared["elicitation"].is_object() && declared.get("sampling").is_none(), "{declared}");
    let answer = json!({ "action": "accept", "content": { "name": "ann" } });
    let answered = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer });
    let stranger = Session::open(&caribou, "/mcp").await;
    assert_eq!(stranger.send(answered.to_string()).await.status, 202, "of another session: passed over");
    assert_eq!(fake.log().received("tools/call").len(), 1);
    assert_eq!(session.send(answered.to_string()).await.status, 202);
    let done = stream.next().await.unwrap();
    assert_eq!((&done["id"], &done["result"]["content"][0]["text"]), (&3.into(), &"done".into()), "{done}");
    let sent = fake.log().received("tools/call")[1].message()["params"].clone();
    assert_eq!((&sent["requestState"], &sent["inputResponses"]), (&"s".into(), &json!({ "who": answer })), "{sent}");
}
