//! JSON-RPC of the modern era, as much as a client of tools needs.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const MODERN: &str = "2026-07-28";

/// The tools: submit, status, cancel, input.
pub(super) const TOOLS: [&str; 4] = ["job_submit", "job_status", "job_cancel", "job_input"];

/// One request.
#[derive(Deserialize)]
pub(super) struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// A call of one tool.
#[derive(Deserialize)]
pub(super) struct Call<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) arguments: &'a RawValue,
}

impl<'a> Request<'a> {
    pub(super) fn is_notification(&self) -> bool {
        self.id.is_none()
    }

    /// The call of a tool that it is.
    pub(super) fn call(&self) -> Option<Call<'a>> {
        serde_json::from_str(self.params?.get()).ok()
    }

    /// The answer with these members of a result.
    pub(super) fn result(&self, members: &str) -> String {
        let id = self.id.map_or("null", RawValue::get);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete",{members}}}}}"#)
    }

    /// The answer of a tool.
    pub(super) fn structured(&self, content: &Value) -> String {
        self.result(&format!(r#""content":[],"structuredContent":{content}"#))
    }

    /// The answer of a tool that failed.
    pub(super) fn failed(&self, why: &str) -> String {
        self.result(&format!(r#""isError":true,"content":{}"#, json!([{ "type": "text", "text": why }])))
    }

    /// The answer of a server that does not know what is wanted.
    pub(super) fn refused(&self) -> String {
        let id = self.id.map_or("null", RawValue::get);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"method not found"}}}}"#)
    }
}

/// What `server/discover` answers.
pub(super) fn discovered() -> String {
    format!(r#""supportedVersions":["{MODERN}"],"capabilities":{{"tools":{{}}}},"ttlMs":60000,"cacheScope":"public""#)
}

/// What `tools/list` answers.
pub(super) fn listed() -> String {
    let tools = TOOLS.map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
    format!(r#""tools":{},"ttlMs":60000,"cacheScope":"public""#, json!(tools))
}
