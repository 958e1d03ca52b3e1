//! What an answer may look like, and what comes of one that is none.

use std::sync::{Arc, Mutex};

use caribou_core::failure::Code;
use caribou_ports::mcp::{CallError, Oddity, Progress, Session, SessionEvent};
use serde_json::{Value, json};

use super::fake::{Client, Fake, call, empty, event, legacy, stream, text, tool, with};
use crate::session::ChannelSession;

/// A legacy session whose tool calls are answered by `script`.
async fn session(
    script: impl Fn(&super::fake::Seen) -> axum::response::Response + Send + Sync + 'static,
) -> (Fake, ChannelSession) {
    let fake = Fake::start(move |seen| legacy(seen).unwrap_or_else(|| script(seen))).await;
    let session = Client::new().open(&fake.url()).await.unwrap();
    (fake, session)
}

const RESULT: &str = r#"{"z":1.0,"a":9223372036854775809,"content":[{"type":"new"}],"s":"\ud800"}"#;

fn raw_answer(id: &Value, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

#[tokio::test]
async fn json_and_event_stream_answers_pass_byte_for_byte() {
    let (_fake, session) = session(|seen| match seen.body["params"]["name"].as_str() {
        Some("json") => text(200, "application/json; charset=utf-8", raw_answer(&seen.body["id"], RESULT)),
        _ => {
            let (chunks, response) = stream();
            let answer = raw_answer(&seen.body["id"], RESULT);
            let foreign = raw_answer(&json!(4711), r#"{"content":"not yours"}"#);
            for chunk in [": hi\r\n\r\nevent: odd\r\ndata: {}\r\n\r\nid: 1\r\ndata:\r\n\r\n", "data: not json\n\n"] {
                chunks.send(chunk.to_owned()).unwrap();
            }
            chunks.send(format!("data: {foreign}\r\n\r\nevent: message\r\ndata: {answer}\r\n\r")).unwrap();
            response
        }
    })
    .await;
    assert_eq!(call(&session, "json").await.unwrap(), RESULT);
    assert_eq!(call(&session, "stream").await.unwrap(), RESULT);
}

#[tokio::test]
async fn what_strays_from_the_protocol_in_an_answer_is_told() {
    let fake = Fake::start(|seen| {
        legacy(seen).unwrap_or_else(|| {
            let id = seen.body["id"].to_string();
            let messages = ["hello".to_owned(), raw_answer(&json!(4711), "{}"), raw_answer(&json!(id), "{}")]
                .map(|m| format!("data: {m}\n\n"));
            text(200, "text/event-stream", messages.concat())
        })
    })
    .await;
    let client = Client::new();
    let session = client.open(&fake.url()).await.unwrap();
    assert_eq!(call(&session, "x").await.unwrap(), "{}");
    let told = [Oddity::NotAMessage, Oddity::UnknownAnswer, Oddity::TextId].map(SessionEvent::Oddity);
    assert_eq!(*client.events.lock().unwrap(), told);
}

#[tokio::test]
async fn progress_goes_to_its_caller_and_a_question_of_the_server_is_answered() {
    let (fake, session) = session(|seen| {
        let (chunks, response) = stream();
        let token = &seen.body["params"]["_meta"]["progressToken"];
        let progress = |token: &Value| {
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
        };
        for message in [
            progress(token),
            progress(&json!("bogus")),
            json!({"jsonrpc": "2.0", "id": "q1", "method": "ping"}),
            json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": {"content": []}}),
        ] {
            chunks.send(event(&message)).unwrap();
        }
        response
    })
    .await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&heard);
    let mut call = tool("work", "{}");
    call.progress = Some(Arc::new(move |progress| {
        let Progress::Progress(report) = progress else { return };
        sink.lock().unwrap().push(report.get().to_owned());
    }));
    session.call_tool(call).await.unwrap();
    assert_eq!(*heard.lock().unwrap(), [r#"{"progress":1}"#]);
    let answered = fake.saw(|seen| seen.body["id"] == "q1").await;
    assert_eq!(answered.body, json!({"jsonrpc": "2.0", "id": "q1", "result": {}}));
}

#[tokio::test]
async fn a_stream_that_ends_without_the_answer_fails_at_once_and_the_session_lives() {
    let (_fake, session) = session(|seen| match seen.body["params"]["name"].as_str() {
        Some("ends") => text(200, "text/event-stream", ": working\n\n"),
        _ => text(200, "application/json", raw_answer(&seen.body["id"], "{}")),
    })
    .await;
    let error = call(&session, "ends").await.unwrap_err();
    assert!(matches!(&error, CallError::StreamEnded(why) if why.contains("`fake`")), "{error}");
    assert_eq!(error.code(), Code::OutcomeUnknown);
    assert_eq!(call(&session, "well").await.unwrap(), "{}");
}

#[tokio::test]
async fn a_stream_with_ids_is_resumed_where_it_broke() {
    let answer = Arc::new(Mutex::new(String::new()));
    let fake = Fake::start(move |seen| match (seen.method.as_str(), seen.header("last-event-id")) {
        ("GET", Some("e-1")) => text(200, "text/event-stream", "id: e-2\nretry: 0\ndata:\n\n"),
        ("GET", Some("e-2")) => text(200, "text/event-stream", answer.lock().unwrap().clone()),
        _ => legacy(seen).unwrap_or_else(|| {
            let message = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": {"late": true}});
            *answer.lock().unwrap() = event(&message);
            text(200, "text/event-stream", "id: e-1\nretry: 0\ndata:\n\n")
        }),
    })
    .await;
    let session = Client::new().open(&fake.url()).await.unwrap();
    assert_eq!(call(&session, "poll").await.unwrap(), r#"{"late":true}"#);
    assert_eq!(fake.asked().iter().filter(|asked| *asked == "tools/call").count(), 1);
}

#[tokio::test]
async fn a_stream_that_brings_nothing_on_resumes_is_given_up() {
    let fake = Fake::start(|seen| match seen.method.as_str() {
        "GET" => text(200, "text/event-stream", "id: e-1\nretry: 0\ndata:\n\n"),
        _ => legacy(seen).unwrap_or_else(|| text(200, "text/event-stream", "id: e-1\nretry: 0\ndata:\n\n")),
    })
    .await;
    let session = Client::new().open(&fake.url()).await.unwrap();
    let error = call(&session, "poll").await.unwrap_err();
    assert!(matches!(error, CallError::StreamEnded(_)), "{error}");
    assert_eq!(fake.seen().iter().filter(|seen| seen.header("last-event-id") == Some("e-1")).count(), 6);
}

#[tokio::test]
async fn what_is_no_answer_is_malformed_and_shown_briefly() {
    let (_fake, session) = session(|seen| match seen.body["params"]["name"].as_str() {
        Some("page") => text(200, "text/html", format!("<html>\n{}", "x".repeat(5_000))),
        Some("nothing") => empty(202),
        Some("foreign") => text(200, "application/json", raw_answer(&json!(99), "{}")),
        Some("gateway") => with(text(503, "text/plain", "down"), "retry-after", "7"),
        _ => text(200, "application/json", b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"\xff\"}".to_vec()),
    })
    .await;
    for (name, holds) in [
        ("page", &["HTTP 200", "text/html", "<html>\\n"][..]),
        ("nothing", &["HTTP 202"]),
        ("foreign", &["no answer in it"]),
        ("gateway", &["HTTP 503", "after 7", "down"]),
    ] {
        let error = call(&session, name).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, CallError::Malformed(_)), "{name}: {text}");
        assert!(holds.iter().all(|part| text.contains(part)) && text.len() < 500, "{name}: {text}");
    }
}

#[tokio::test]
async fn an_answer_above_the_bound_is_refused_whichever_way_it_comes() {
    let (_fake, session) = session(|seen| {
        let huge = raw_answer(&seen.body["id"], &format!("\"{}\"", "x".repeat(2 << 20)));
        match seen.body["params"]["name"].as_str() {
            Some("json") => text(200, "application/json", huge),
            _ => text(200, "text/event-stream", format!("data: {huge}\n\n")),
        }
    })
    .await;
    for name in ["json", "stream"] {
        let error = call(&session, name).await.unwrap_err();
        assert!(matches!(error, CallError::TooLarge { .. }), "{name}: {error}");
    }
}

#[tokio::test]
async fn a_refused_credential_is_denied_and_not_tried_again() {
    let (fake, session) =
        session(|_| with(empty(403), "www-authenticate", r#"Bearer error="insufficient_scope", scope="files:write""#))
            .await;
    let error = call(&session, "x").await.unwrap_err();
    assert!(matches!(&error, CallError::Denied(why) if why.contains("files:write")), "{error}");
    assert_eq!(fake.asked().iter().filter(|asked| *asked == "tools/call").count(), 1);
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_once_by_its_own_id() {
    let held = Mutex::new(Vec::new());
    let (fake, session) = session(move |_| {
        let (chunks, response) = stream();
        held.lock().unwrap().push(chunks);
        response
    })
    .await;
    let calling = session.call_tool(tool("sleep", "{}"));
    let seen = tokio::select! {
        _ = calling => panic!("it never answers"),
        seen = fake.saw(|seen| seen.rpc() == "tools/call") => seen,
    };
    let cancelled = fake.saw(|seen| seen.rpc() == "notifications/cancelled").await;
    assert_eq!(cancelled.body["params"]["requestId"], seen.body["id"]);
}
