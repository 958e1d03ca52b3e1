//! What the echo servers answer, whatever carries it.
//!
//! Owns the methods of both eras that a tool call needs. Unknown methods are refused with -32601, unknown tools with
//! -32602; text that is no JSON-RPC request has no answer. Keeps W1: id and message are repeated as they were written.

use std::borrow::Cow;

use caribou_core::era::{Era, LATEST_LEGACY_VERSION, MODERN_VERSION};
use serde::Deserialize;
use serde_json::value::RawValue;

const SERVER_INFO: &str = r#"{"name":"echo","version":"1"}"#;

/// What every tool says of itself behind its name.
const TOOL: &str = concat!(
    r#""description":"Answers with the message","inputSchema":{"type":"object","#,
    r#""properties":{"message":{"type":"string"}},"required":["message"]}"#
);

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Message<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
}

/// The answer to one message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A notification, or nothing we understand: no answer.
    Silence,
    /// The answer to `initialize`; over HTTP it mints a session.
    Opened(String),
    /// Any other result.
    Result(String),
    /// A JSON-RPC error.
    Refused(String),
}

/// Answers `text`, one JSON-RPC message. Of the `tools` it lists only the first can be called.
pub(crate) fn answer(era: Era, tools: u16, text: &str) -> Answer {
    let Ok(Request { id: Some(id), method, params }) = serde_json::from_str(text) else { return Answer::Silence };
    let id = id.get();
    match (era, method.as_ref()) {
        (_, "tools/call") => called(era, id, params),
        (_, "tools/list") => result(era, id, &format!(r#""tools":[{}]{}"#, listed(tools), cacheable(era))),
        (Era::Legacy, "initialize") => Answer::Opened(envelope(id, &opened())),
        (Era::Legacy, "ping") => Answer::Result(envelope(id, "{}")),
        (Era::Modern, "server/discover") => result(
            era,
            id,
            &format!(r#""supportedVersions":["{MODERN_VERSION}"],"capabilities":{{"tools":{{}}}}{}"#, cacheable(era)),
        ),
        _ => refused(id, -32601, "unknown method"),
    }
}

fn opened() -> String {
    format!(
        r#"{{"protocolVersion":"{LATEST_LEGACY_VERSION}","capabilities":{{"tools":{{}}}},"serverInfo":{SERVER_INFO}}}"#
    )
}

fn listed(tools: u16) -> String {
    let others = (2..=tools).map(|n| format!("echo_{n}"));
    let names = std::iter::once("echo".to_owned()).chain(others);
    names.map(|name| format!(r#"{{"name":"{name}",{TOOL}}}"#)).collect::<Vec<_>>().join(",")
}

fn called(era: Era, id: &str, params: Option<&RawValue>) -> Answer {
    match params.and_then(|params| serde_json::from_str::<Call<'_>>(params.get()).ok()) {
        Some(call) if call.name == "echo" => {
            result(era, id, &format!(r#""content":[{{"type":"text","text":{}}}]"#, call.arguments.message))
        }
        _ => refused(id, -32602, "call echo with a message"),
    }
}

/// What revision 2026-07-28 wants on every list (mcp.md §2.3, §2.4).
fn cacheable(era: Era) -> &'static str {
    match era {
        Era::Legacy => "",
        Era::Modern => r#","ttlMs":60000,"cacheScope":"public""#,
    }
}

fn result(era: Era, id: &str, members: &str) -> Answer {
    Answer::Result(match era {
        Era::Legacy => envelope(id, &format!("{{{members}}}")),
        Era::Modern => envelope(
            id,
            &format!(
                r#"{{"resultType":"complete",{members},"_meta":{{"io.modelcontextprotocol/serverInfo":{SERVER_INFO}}}}}"#
            ),
        ),
    })
}

fn envelope(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn refused(id: &str, code: i32, message: &str) -> Answer {
    Answer::Refused(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = concat!(
        r#"{"jsonrpc":"2.0","id":"a\u0031","method":"tools/call","#,
        r#""params":{"name":"echo","arguments":{"message":"h\u0069"}}}"#
    );

    #[test]
    fn a_call_is_answered_with_its_own_bytes() {
        let Answer::Result(text) = answer(Era::Legacy, 1, CALL) else { panic!("no result") };
        assert_eq!(text, r#"{"jsonrpc":"2.0","id":"a\u0031","result":{"content":[{"type":"text","text":"h\u0069"}]}}"#);
    }

    #[test]
    fn every_answer_is_json() {
        for era in [Era::Legacy, Era::Modern] {
            for method in ["initialize", "ping", "server/discover", "tools/list", "tools/call"] {
                let request = CALL.replace("tools/call", method);
                let (Answer::Opened(text) | Answer::Result(text) | Answer::Refused(text)) = answer(era, 3, &request)
                else {
                    panic!("{method} is not answered")
                };
                assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
            }
        }
    }

    #[test]
    fn as_many_tools_are_listed_as_were_asked_for() {
        let names = |tools| listed(tools).matches(r#""name":"#).count();
        assert_eq!([1, 2, 10].map(names), [1, 2, 10]);
    }

    #[test]
    fn each_era_refuses_the_opening_of_the_other() {
        let request = |method| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
        assert!(matches!(answer(Era::Legacy, 1, &request("server/discover")), Answer::Refused(_)));
        assert!(matches!(answer(Era::Modern, 1, &request("initialize")), Answer::Refused(_)));
    }

    #[test]
    fn a_notification_and_noise_are_met_with_silence() {
        assert_eq!(
            answer(Era::Legacy, 1, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
            Answer::Silence
        );
        assert_eq!(answer(Era::Legacy, 1, "noise"), Answer::Silence);
    }
}
