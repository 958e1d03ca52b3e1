//! Which arguments of which tools are mirrored, asked for when the client calls a tool that it did not list here: it may
//! keep lists longer than this process lives (mcp.md §3.1).

use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::answers::{Awaited, LIST_TOOLS};
use super::ask::Request;
use super::bridge::Bridge;
use super::fault::Fault;
use crate::transport::http::live::Live;
use crate::wire::errors::HEADER_MISMATCH;
use crate::wire::params::member;

/// What the request for the list is called; a client that names one of its own like this gets both answers.
const ID: &str = "caribou-stdio-tools";

/// The members of `_meta` that say who asks, and nothing of one call.
const PROTOCOL: &str = "io.modelcontextprotocol/";

/// A list of more pages than this has no end.
const MAX_PAGES: usize = 1_000;

/// Whether this refusal says that a header does not mirror the message. It was not processed.
pub(super) fn is_mismatch(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Refusal {
        error: Error,
    }
    #[derive(Deserialize)]
    struct Error {
        code: i64,
    }
    serde_json::from_slice::<Refusal>(body).is_ok_and(|refusal| refusal.error.code == HEADER_MISMATCH)
}

impl Bridge {
    /// Lists the tools as the client that sent `request` would, and shows it nothing.
    pub(super) async fn relearn(self: &Arc<Self>, live: &Live, request: &Request, version: &str) -> Result<(), Fault> {
        let meta = who_asks(request.params.as_deref());
        let id: Box<RawValue> = to_raw_value(ID).unwrap_or_default();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let mut params = json!({ "_meta": meta });
            if let Some(cursor) = cursor {
                params["cursor"] = cursor.into();
            }
            let body = json!({ "jsonrpc": "2.0", "id": ID, "method": LIST_TOOLS, "params": params }).to_string();
            let headers = self.modern_headers(live, version, LIST_TOOLS, None, None);
            let response = self.post(live, headers, body.into()).await?;
            if !response.status().is_success() {
                return Err(Fault::refused(&self.link.name(), response.status(), ""));
            }
            let (head, next) = (response.headers().clone(), Mutex::new(None));
            let awaited =
                Awaited { id: &id, method: LIST_TOOLS, headers: Some(&head), is_shown: false, next: Some(&next) };
            self.read_answer(live, response, &awaited, false).await?;
            cursor = next.into_inner().unwrap_or_else(PoisonError::into_inner);
            if cursor.is_none() {
                break;
            }
        }
        Ok(())
    }
}

fn who_asks(params: Option<&RawValue>) -> Map<String, Value> {
    let meta = params.and_then(|params| member(params, "_meta"));
    let mut meta: Map<String, Value> = meta.and_then(|meta| serde_json::from_str(meta.get()).ok()).unwrap_or_default();
    meta.retain(|key, _| key.starts_with(PROTOCOL));
    meta
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_header_that_does_not_mirror_the_message_is_a_reason_to_list() {
        assert!(is_mismatch(br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"no"}}"#));
        assert!(!is_mismatch(br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#));
        assert!(!is_mismatch(b"what?"));
    }

    #[test]
    fn the_list_is_asked_for_under_no_token_of_a_call() {
        let params = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":1}}"#;
        let meta = who_asks(Some(serde_json::from_str(params).unwrap()));
        assert_eq!(Value::Object(meta), json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" }));
    }
}
