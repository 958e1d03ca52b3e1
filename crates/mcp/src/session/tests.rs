//! What a session makes of calls, over a channel whose answers are written down beforehand.

use super::*;
use crate::scripted::{Says, Scripted, opening, stdio_server};

fn session(era: Era, script: impl IntoIterator<Item = Says>) -> (Arc<Scripted>, ChannelSession) {
    let channel = Scripted::new(script);
    let facts =
        SessionFacts { era, version: "v".to_owned(), stateful: true, pid: None, server_info: None, capabilities: None };
    let opened = Opened { channel: channel.clone(), facts, is_resumed: false };
    (channel, ChannelSession::new(opened, &opening(stdio_server(&["x"])), 100))
}

fn call(arguments: Option<&str>) -> ToolCall {
    let arguments = arguments.map(|json| RawValue::from_string(json.to_owned()).expect("valid JSON"));
    ToolCall { name: "t".into(), arguments, meta: Vec::new(), headers: Vec::new(), progress: None, task: None }
}

#[tokio::test]
async fn arguments_and_results_pass_byte_for_byte() {
    let result = r#"{"z":1.0,"content":[{"type":"hologram"}],"n":9223372036854775809}"#;
    for (arguments, sent) in [
        (Some(r#"{"b":9223372036854775809,"a":1.0}"#), r#","arguments":{"b":9223372036854775809,"a":1.0}"#),
        (Some("{}"), r#","arguments":{}"#),
        (Some("null"), r#","arguments":null"#),
        (None, ""),
    ] {
        let (channel, session) = session(Era::Legacy, [Says::Result(result)]);
        assert_eq!(session.call_tool(call(arguments)).await.expect("answered").get(), result);
        assert_eq!(channel.seen.lock().unwrap()[0].1, format!(r#"{{"name":"t"{sent}}}"#));
    }
}

#[tokio::test]
async fn every_call_that_is_listened_to_has_a_token_of_its_own() {
    let (channel, session) = session(Era::Legacy, [Says::Result("{}"), Says::Result("{}")]);
    for _ in 0..2 {
        let call = ToolCall { progress: Some(Arc::new(|_| {})), ..call(None) };
        session.call_tool(call).await.expect("answered");
    }
    let sent: Vec<String> = channel.seen.lock().unwrap().iter().map(|(_, params)| params.clone()).collect();
    let expected = [1, 2].map(|token| format!(r#"{{"name":"t","_meta":{{"progressToken":{token}}}}}"#));
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn a_modern_request_carries_its_own_metadata() {
    let (channel, session) = session(Era::Modern, [Says::Result("{}"), Says::Result(r#"{"tools":[]}"#)]);
    session.call_tool(call(None)).await.expect("answered");
    session.list_tools().await.expect("listed");
    for (_, params) in channel.seen.lock().unwrap().iter() {
        let fields = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#;
        assert!(params.contains(fields) && params.contains("clientCapabilities\":{}"), "{params}");
    }
}

#[tokio::test]
async fn a_modern_result_of_an_unknown_type_is_an_error() {
    let (_, session) =
        session(Era::Modern, [Says::Result(r#"{"resultType":"complete"}"#), Says::Result(r#"{"resultType":"x"}"#)]);
    assert!(session.call_tool(call(None)).await.is_ok());
    assert!(matches!(session.call_tool(call(None)).await, Err(CallError::Malformed(_))));
}

#[tokio::test]
async fn a_result_over_the_bound_is_refused_whole() {
    let long = &*format!(r#"{{"text":"{}"}}"#, "x".repeat(100)).leak();
    let (_, session) = session(Era::Legacy, [Says::Result(long)]);
    assert!(matches!(session.call_tool(call(None)).await, Err(CallError::TooLarge { limit: 100 })));
}

#[tokio::test]
async fn a_call_that_may_become_a_task_says_so_in_the_words_of_its_era() {
    // mcp.md §9.1 and §9.2, who decides and negotiation.
    for (era, sent) in [
        (Era::Legacy, r#"{"name":"t","arguments":{},"task":{"ttl":60000}}"#),
        (
            Era::Modern,
            r#""io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
        ),
    ] {
        let (channel, session) = session(era, [Says::Result("{}"), Says::Result("{}")]);
        let task = RawValue::from_string(r#"{"ttl":60000}"#.to_owned()).ok();
        session.call_tool(ToolCall { task, ..call(Some("{}")) }).await.expect("answered");
        session.call_tool(call(Some("{}"))).await.expect("answered");
        let seen = channel.seen.lock().unwrap();
        assert!(seen[0].1.contains(sent) && (era == Era::Legacy || !seen[0].1.contains("ttl")), "{}", seen[0].1);
        assert!(!seen[1].1.contains("task"), "{}", seen[1].1);
    }
}

fn about(method: &'static str, params: &str) -> RawRequest {
    let params = RawValue::from_string(params.to_owned()).expect("valid JSON");
    RawRequest { method: method.into(), params, headers: Vec::new(), progress: None }
}

#[tokio::test]
async fn a_request_of_any_method_passes_byte_for_byte() {
    let answer = r#"{"z":1.0,"taskId":"a"}"#;
    let (channel, legacy) = session(Era::Legacy, [Says::Result(answer)]);
    let asked = about("tasks/get", r#"{"taskId":"a","x":9223372036854775809,"_meta":{"k":1.0}}"#);
    assert_eq!(legacy.request(asked).await.expect("answered").get(), answer);
    assert_eq!(channel.seen.lock().unwrap()[0].1, r#"{"taskId":"a","x":9223372036854775809,"_meta":{"k":1.0}}"#);

    let (channel, modern) = session(Era::Modern, [Says::Result("{}"), Says::Result("{}")]);
    modern.request(about("tasks/get", r#"{"taskId":"a"}"#)).await.expect("answered");
    modern.request(about("resources/read", r#"{"uri":"u"}"#)).await.expect("answered");
    let seen = channel.seen.lock().unwrap();
    let declared = r#""extensions":{"io.modelcontextprotocol/tasks":{}}"#;
    assert!(seen[0].1.contains(declared) && !seen[1].1.contains(declared), "{seen:?}");
}

#[test]
fn methods_are_mirrored_by_what_they_are_about() {
    // mcp.md §3.1, Mcp-Name.
    let mirrored = ["tasks/get", "tasks/update", "tasks/cancel", "prompts/get", "resources/read", "tools/list"];
    let expected = [Some("taskId"), Some("taskId"), Some("taskId"), Some("name"), Some("uri"), None];
    assert_eq!(mirrored.map(mirrored_in_name), expected);
}

#[tokio::test]
async fn a_task_in_answer_to_anything_but_a_call_is_an_error() {
    // mcp.md §9.2, client.
    let task = Says::Result(r#"{"resultType":"task","taskId":"a"}"#);
    let (_, modern) = session(Era::Modern, [task, Says::Result(r#"{"resultType":"task","taskId":"a"}"#)]);
    assert!(modern.call_tool(call(None)).await.is_ok());
    let refused = modern.request(about("tasks/get", r#"{"taskId":"a"}"#)).await;
    assert!(matches!(refused, Err(CallError::Malformed(_))));
}

#[tokio::test(start_paused = true)]
async fn the_result_of_a_task_that_asks_is_asked_for_once_and_no_longer_than_its_session_lives() {
    // mcp.md §9.1, input.
    let (channel, legacy) = session(Era::Legacy, [Says::Nothing]);
    for _ in 0..3 {
        assert!(legacy.task_questions("a").await.expect("asked").is_empty());
    }
    assert_eq!(*channel.seen.lock().unwrap(), [("tasks/result".to_owned(), r#"{"taskId":"a"}"#.to_owned())]);
    let answer = RawValue::from_string("{}".to_owned()).expect("valid JSON");
    assert!(!legacy.answer_task("a", "q-1", answer).await.expect("looked"), "nothing was asked");
    legacy.close().await;
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    assert!(legacy.questions.await_result("a").is_some(), "nobody waits for it any more");
}
