//! What the server sends: passed on as it came, and noticed when it is the answer that is awaited.

use std::sync::{Mutex, PoisonError};

use http::HeaderMap;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::bridge::Bridge;
use crate::era::handshake::INITIALIZE;
use crate::wire::params::member;

/// The request whose answer teaches which arguments are mirrored.
pub(super) const LIST_TOOLS: &str = "tools/list";

/// The answer that is awaited on one stream.
pub(super) struct Awaited<'a> {
    /// The id of the request, as the client wrote it.
    pub(super) id: &'a RawValue,
    pub(super) method: &'a str,
    /// The head of the HTTP answer; `None` = it refuses.
    pub(super) headers: Option<&'a HeaderMap>,
    /// Whether the client is shown the answer: not, when it has had it before.
    pub(super) is_shown: bool,
    /// Where the cursor of the next page is left.
    pub(super) next: Option<&'a Mutex<Option<String>>>,
}

/// The members of a message that are looked at.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<IgnoredAny>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl Bridge {
    /// Passes every message of `text` on, in order. Whether the awaited answer was among them.
    pub(super) async fn deliver(&self, text: &[u8], awaited: Option<&Awaited<'_>>) -> bool {
        let Ok(text) = std::str::from_utf8(text) else {
            tracing::warn!("a message of the server is not UTF-8 and was left out");
            return false;
        };
        let mut is_answered = false;
        for message in messages(text) {
            let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(message.get()) else {
                tracing::warn!("the server sent something that is no message, and it was left out");
                continue;
            };
            match awaited {
                Some(awaited) if is_answer(&envelope, awaited.id) => {
                    is_answered = true;
                    self.learn(&envelope, awaited);
                    if awaited.is_shown {
                        self.out.line(message.get()).await;
                    }
                }
                // An error without an id on the stream of a request is about that request.
                Some(awaited) if envelope.is_nameless_error() => {
                    is_answered = true;
                    let error = envelope.error.map_or("null", RawValue::get);
                    let line = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, awaited.id.get());
                    if awaited.is_shown {
                        self.out.line(&line).await;
                    }
                }
                _ => self.out.line(message.get()).await,
            }
        }
        is_answered
    }

    /// Before the client reads it, since its next message may go by it.
    fn learn(&self, envelope: &Envelope<'_>, awaited: &Awaited<'_>) {
        let (Some(result), Some(headers)) = (envelope.result, awaited.headers) else { return };
        match awaited.method {
            INITIALIZE => {
                let version = member(result, "protocolVersion");
                let version = version.and_then(|version| serde_json::from_str::<String>(version.get()).ok());
                self.opened(headers, version.as_deref());
            }
            LIST_TOOLS => {
                let tools = member(result, "tools");
                let tools = tools.and_then(|tools| serde_json::from_str::<Vec<&RawValue>>(tools.get()).ok());
                self.mirrors.learn_more(tools.unwrap_or_default());
                if let Some(next) = awaited.next {
                    let cursor = member(result, "nextCursor");
                    let cursor = cursor.and_then(|cursor| serde_json::from_str(cursor.get()).ok());
                    *next.lock().unwrap_or_else(PoisonError::into_inner) = cursor;
                }
            }
            _ => {}
        }
    }
}

impl Envelope<'_> {
    fn is_nameless_error(&self) -> bool {
        self.id.is_none() && self.method.is_none() && self.error.is_some()
    }
}

/// The text of each message: one, or the elements of an array.
fn messages(text: &str) -> Vec<&RawValue> {
    if text.trim_ascii_start().starts_with('[') {
        return serde_json::from_str(text).unwrap_or_default();
    }
    serde_json::from_str(text).into_iter().collect()
}

/// Servers may write an id in another way than it was written to them.
fn is_answer(envelope: &Envelope<'_>, id: &RawValue) -> bool {
    let means = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).ok();
    let is_same = |theirs: &RawValue| theirs.get() == id.get() || means(theirs) == means(id);
    envelope.method.is_none() && envelope.id.is_some_and(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_known_by_its_id_however_that_is_written() {
        let answers = |message: &str, id: &str| {
            is_answer(&serde_json::from_str(message).unwrap(), serde_json::from_str(id).unwrap())
        };
        assert!(answers(r#"{"id":"a1","result":{}}"#, r#""a1""#));
        assert!(answers(r#"{"id":"a\u0031","error":{}}"#, r#""a1""#));
        assert!(!answers(r#"{"id":"1","result":{}}"#, "1"));
        assert!(!answers(r#"{"id":1,"method":"sampling/createMessage"}"#, "1"), "the server asks");
        assert!(!answers(r#"{"method":"notifications/progress"}"#, "1"));
    }

    #[test]
    fn arrays_are_taken_apart_and_the_text_stays_as_it_is() {
        let texts = |text: &str| messages(text).iter().map(|raw| raw.get().to_owned()).collect::<Vec<_>>();
        assert_eq!(texts(r#" [{"a":1.0}, {"b" : 2}]"#), [r#"{"a":1.0}"#, r#"{"b" : 2}"#]);
        assert_eq!(texts("{\"big\":9223372036854775809,\n\"s\":\"\\ud800\"}").len(), 1);
        assert!(texts("hello").is_empty());
    }
}
