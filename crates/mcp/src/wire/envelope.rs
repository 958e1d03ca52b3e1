//! JSON-RPC 2.0 messages over raw JSON text: taken apart and put together without touching what they carry.
//!
//! Owns the envelope alone; the payloads are slices of the text as it came (invariant W1): unknown members, key
//! order, big numbers, lone surrogate escapes and any depth of nesting pass. Arrays of messages, which revision
//! 2025-03-26 allows, are taken apart. Whatever is no message comes out as noise, never as an error, so that one bad
//! message ends no session.

use std::fmt;

use caribou_ports::mcp::CallError;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::errors;
use super::ids::ResponseId;

/// One message of a server, borrowed from the text it came in.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    /// The answer to a request of ours.
    Response {
        /// Which request it names.
        id: ResponseId,
        /// The result as it came, or the error.
        outcome: Result<&'a RawValue, CallError>,
    },
    /// The server asks something of us.
    Request {
        /// Its id, to be sent back as it came.
        id: &'a RawValue,
        /// What it asks for.
        method: String,
        /// The parameters.
        params: Option<&'a RawValue>,
    },
    /// The server tells us something.
    Notification {
        /// What it tells.
        method: String,
        /// The parameters.
        params: Option<&'a RawValue>,
    },
    /// Not a JSON-RPC 2.0 message; the text of it.
    Noise(&'a [u8]),
}

/// Hands every message of `text` to `deliver`, in order: one for an object, each element of an array.
pub(crate) fn each_message(text: &[u8], mut deliver: impl FnMut(Message<'_>)) {
    let Ok(valid) = std::str::from_utf8(text) else {
        return deliver_damaged(text, &mut deliver);
    };
    if valid.trim_ascii_start().starts_with('[') {
        let mut delivered = 0_usize;
        let batch = Batch { deliver: &mut deliver, delivered: &mut delivered };
        let mut json = serde_json::Deserializer::from_str(valid);
        let whole = json.deserialize_seq(batch).and_then(|()| json.end());
        if whole.is_err() || delivered == 0 {
            deliver(Message::Noise(text));
        }
    } else {
        deliver(message(valid));
    }
}

/// A message that is not UTF-8 fails the call it answers, if its id can still be read, and nothing else
/// (architecture.md §9).
fn deliver_damaged(text: &[u8], deliver: &mut impl FnMut(Message<'_>)) {
    let patched = String::from_utf8_lossy(text);
    match message(&patched) {
        Message::Response { id, .. } => deliver(Message::Response { id, outcome: Err(errors::not_utf8()) }),
        _ => deliver(Message::Noise(text)),
    }
}

/// The one message that `text` is.
fn message(text: &str) -> Message<'_> {
    let noise = Message::Noise(text.as_bytes());
    let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(text) else { return not_json(text).unwrap_or(noise) };
    if envelope.jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
        return noise;
    }
    let error = envelope.error.filter(|error| error.get() != "null");
    match (envelope.method, envelope.id) {
        (Some(method), Some(id)) if id.get() != "null" => Message::Request { id, method, params: envelope.params },
        (Some(method), _) => Message::Notification { method, params: envelope.params },
        (None, id) => match (error, envelope.result) {
            (Some(error), _) => Message::Response { id: ResponseId::read(id), outcome: Err(errors::rpc(error)) },
            (None, Some(result)) if id.is_some() => Message::Response { id: ResponseId::read(id), outcome: Ok(result) },
            // Its call would wait until its bound for an answer that has come.
            (None, None) if names_one_of_ours(id) => {
                Message::Response { id: ResponseId::read(id), outcome: Err(errors::no_outcome()) }
            }
            (None, _) => noise,
        },
    }
}

/// What JSON does not have and libraries write all the same, Python's among them.
const NO_NUMBERS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// An answer that is JSON but for such numbers fails the call it names: it would wait until its bound for an answer
/// that has come. `None` = it is nothing of the kind.
fn not_json(text: &str) -> Option<Message<'_>> {
    let (mut patched, mut rest, mut in_string) = (String::with_capacity(text.len()), text, false);
    while let Some(first) = rest.chars().next() {
        let odd = NO_NUMBERS.iter().find(|odd| !in_string && rest.starts_with(**odd));
        let length = match (odd, first) {
            (Some(odd), _) => odd.len(),
            (None, '\\') if in_string => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            (None, first) => first.len_utf8(),
        };
        in_string ^= first == '"';
        patched.push_str(if odd.is_some() { "null" } else { &rest[..length] });
        rest = &rest[length..];
    }
    if patched == text {
        return None;
    }
    // Once patched there is nothing odd left, so that this comes here once.
    let Message::Response { id, .. } = message(&patched) else { return None };
    Some(Message::Response { id, outcome: Err(errors::not_json()) })
}

/// Whether `id` can be that of a request of ours: only then does a message that says nothing else mean anything.
fn names_one_of_ours(id: Option<&RawValue>) -> bool {
    matches!(ResponseId::read(id), ResponseId::Ours(_) | ResponseId::OursAsText(_))
}

/// The members of a message that we read; all others are skipped.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Keeps `null` apart from absent: `"result": null` is an answer.
fn present<'de, D: Deserializer<'de>>(json: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(json).map(Some)
}

/// Delivers the elements of an array one by one, so that a long array needs no list of them.
struct Batch<'d, F> {
    deliver: &'d mut F,
    delivered: &'d mut usize,
}

impl<'de, F: FnMut(Message<'_>)> Visitor<'de> for Batch<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element::<&'de RawValue>()? {
            *self.delivered += 1;
            (self.deliver)(message(element.get()));
        }
        Ok(())
    }
}

/// A request of ours, as it is sent.
#[derive(Serialize)]
struct OurRequest<'a> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
}

/// A notification of ours, as it is sent.
#[derive(Serialize)]
struct OurNotification<'a> {
    jsonrpc: &'static str,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
}

/// An answer of ours to a request of a server, as it is sent.
#[derive(Serialize)]
struct OurResponse<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Refusal>,
}

/// Why a server's request is not granted.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Refusal {
    /// JSON-RPC code.
    pub(crate) code: i64,
    /// For people.
    pub(crate) message: &'static str,
}

/// The text of a request, without a line end.
pub(crate) fn request(id: u64, method: &str, params: Option<&RawValue>) -> Vec<u8> {
    text(&OurRequest { jsonrpc: "2.0", id, method, params })
}

/// The text of a notification, without a line end.
pub(crate) fn notification(method: &str, params: Option<&RawValue>) -> Vec<u8> {
    text(&OurNotification { jsonrpc: "2.0", method, params })
}

/// The text of an answer to the server's request `id`, without a line end.
pub(crate) fn response(id: &RawValue, outcome: Result<&RawValue, Refusal>) -> Vec<u8> {
    text(&OurResponse { jsonrpc: "2.0", id, result: outcome.ok(), error: outcome.err() })
}

/// Serialises a message of ours. Writing strings, numbers and raw text into memory cannot fail.
fn text(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line a message: kind, id, payload.
    fn told(text: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        each_message(text, |message| {
            lines.push(match message {
                Message::Response { id, outcome: Ok(result) } => format!("{id:?} {}", result.get()),
                Message::Response { id, outcome: Err(error) } => format!("{id:?} {error}"),
                Message::Request { id, method, .. } => format!("asks {} {method}", id.get()),
                Message::Notification { method, params } => {
                    format!("tells {method} {}", params.map_or("-", RawValue::get))
                }
                Message::Noise(text) => format!("noise {}", String::from_utf8_lossy(text)),
            });
        });
        lines
    }

    #[test]
    fn a_result_passes_byte_for_byte() {
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        for result in [r#"{"z":1.0,"a":9223372036854775809,"s":"\ud800","n":{ "k" : null }}"#, "null", deep.as_str()] {
            let text = format!(r#"{{"x":0,"result":{result},"jsonrpc":"2.0","id":7}}"#);
            assert_eq!(told(text.as_bytes()), [format!("Ours(7) {result}")]);
        }
    }

    #[test]
    fn requests_notifications_and_errors_are_told_apart() {
        assert_eq!(told(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#), [r#"asks "a" ping"#]);
        let progress = br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#;
        assert_eq!(told(progress), [r#"tells notifications/progress {"progress":1}"#]);
        let refused = br#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no such method"},"result":null}"#;
        assert_eq!(told(refused), ["Ours(3) the server answered with error -32601: no such method"]);
        let nobodys = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#;
        assert_eq!(told(nobodys), ["Null the server answered with error -32700: what?"]);
        assert_eq!(told(br#"{"jsonrpc":"2.0","id":4,"result":{},"error":null}"#), ["Ours(4) {}"]);
    }

    #[test]
    fn an_array_is_taken_apart_in_order() {
        let text = br#" [{"jsonrpc":"2.0","method":"m"}, 5, {"jsonrpc":"2.0","id":1,"result":{}}]"#;
        assert_eq!(told(text), ["tells m -", "noise 5", "Ours(1) {}"]);
        assert_eq!(told(b"[]"), ["noise []"]);
        let cut = br#"[{"jsonrpc":"2.0","id":1,"result":{}},"#;
        assert_eq!(told(cut).len(), 2, "what came before the fault counts");
    }

    #[test]
    fn everything_else_is_noise() {
        for text in ["Server v1 ready", "42", "null", "\"text\"", r#"{"level":"info"}"#, r#"{"jsonrpc":"2.0"}"#] {
            assert_eq!(told(text.as_bytes()), [format!("noise {text}")]);
        }
        assert!(told(br#"{"jsonrpc":"1.0","id":1,"result":{}}"#)[0].starts_with("noise"));
        assert!(told(br#"{"jsonrpc":"2.0","result":{}}"#)[0].starts_with("noise"));
        assert!(told(br#"{"jsonrpc":"2.0","id":1,"method":5}"#)[0].starts_with("noise"));
    }

    #[test]
    fn an_answer_that_says_nothing_fails_the_call_it_names() {
        for text in [r#"{"jsonrpc":"2.0","id":3}"#, r#"{"jsonrpc":"2.0","id":"3","error":null}"#] {
            let lines = told(text.as_bytes());
            assert!(lines[0].ends_with("(3) the server's answer holds neither a result nor an error"), "{lines:?}");
        }
        assert!(told(br#"{"jsonrpc":"2.0","id":null}"#)[0].starts_with("noise"));
        assert!(told(br#"{"jsonrpc":"2.0","id":"x"}"#)[0].starts_with("noise"));
    }

    #[test]
    fn an_answer_that_is_not_utf8_fails_its_own_call() {
        let lines = told(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{\"t\":\"\xff\xfe\"}}");
        assert_eq!(lines, ["Ours(9) the server's answer is not valid UTF-8 and was refused"]);
        assert!(told(b"\xff\xfe garbage")[0].starts_with("noise"));
    }

    #[test]
    fn an_answer_with_numbers_that_json_does_not_have_fails_its_own_call() {
        let refused = "Ours(9) the server's answer is not valid JSON: it holds NaN or an infinity, and was refused";
        for odd in [r#"NaN"#, r#"{"a":[1,-Infinity]}"#, r#"{"t":"\\\"NaN","n":Infinity}"#] {
            assert_eq!(told(format!(r#"{{"jsonrpc":"2.0","id":9,"result":{odd}}}"#).as_bytes()), [refused], "{odd}");
        }
        let text = r#"{"jsonrpc":"2.0","id":9,"result":{"t":"NaN \" Infinity"}}"#;
        assert_eq!(told(text.as_bytes()), [r#"Ours(9) {"t":"NaN \" Infinity"}"#]);
        for text in ["loss is NaN", r#"{"jsonrpc":"2.0","method":"m","params":NaN}"#, r#"{"jsonrpc":"2.0","id":NaN"#] {
            assert_eq!(told(text.as_bytes()), [format!("noise {text}")]);
        }
    }

    #[test]
    fn our_messages_carry_raw_text_unchanged() {
        let params: &RawValue = serde_json::from_str(r#"{"b":1.0,"a":"\ud800"}"#).expect("valid JSON");
        let sent = String::from_utf8(request(5, "tools/call", Some(params))).expect("UTF-8");
        assert_eq!(sent, r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"b":1.0,"a":"\ud800"}}"#);
        let sent = String::from_utf8(notification("notifications/initialized", None)).expect("UTF-8");
        assert_eq!(sent, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        let id: &RawValue = serde_json::from_str("\"x\"").expect("valid JSON");
        let refusal = Refusal { code: errors::METHOD_NOT_FOUND, message: "no" };
        let sent = String::from_utf8(response(id, Err(refusal))).expect("UTF-8");
        assert_eq!(sent, r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"no"}}"#);
    }
}
