//! What a well-behaved server answers, in both eras.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::script::{Eras, Mismatch, Script};

/// The revision without `initialize`.
pub(super) const MODERN: &str = "2026-07-28";

/// The revisions with `initialize`, newest first.
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// One message from a client.
#[derive(Debug, Deserialize)]
pub(super) struct Incoming {
    /// Its id; absent in a notification.
    pub(super) id: Option<Box<RawValue>>,
    /// Its method; absent in an answer.
    pub(super) method: Option<String>,
    /// Its parameters.
    pub(super) params: Option<Box<RawValue>>,
}

impl Incoming {
    /// The id as it was written.
    pub(super) fn id(&self) -> &str {
        self.id.as_deref().map_or("null", RawValue::get)
    }

    /// The parameters, null when there are none.
    pub(super) fn params(&self) -> Value {
        self.params.as_deref().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// The task that the arguments of a call name, empty when they name none.
    pub(super) fn task(&self) -> String {
        self.params()["arguments"]["task_id"].as_str().unwrap_or_default().to_owned()
    }

    /// One member of `_meta`.
    pub(super) fn meta(&self, key: &str) -> Option<Value> {
        self.params().get("_meta")?.get(key).cloned()
    }

    /// Whether this server takes it for a request of the modern era; to a legacy one its metadata means nothing.
    pub(super) fn is_modern(&self, script: &Script) -> bool {
        script.eras != Eras::Legacy && self.meta("io.modelcontextprotocol/protocolVersion").is_some()
    }

    /// The answer with this result.
    pub(super) fn result(&self, result: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.id())
    }

    /// The answer with this error.
    pub(super) fn error(&self, error: &Value) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, self.id())
    }
}

/// A JSON-RPC error object.
pub(super) fn error(code: i32, message: &str) -> Value {
    json!({ "code": code, "message": message })
}

/// What is wrong with the envelope of this request, if anything: the error and its HTTP status.
pub(super) fn refusal(script: &Script, incoming: &Incoming) -> Option<(u16, Value)> {
    let method = incoming.method.as_deref()?;
    if incoming.is_modern(script) {
        return modern_refusal(incoming, method);
    }
    if method == "initialize" && script.eras == Eras::Modern {
        return Some((400, unsupported(&incoming.params()["protocolVersion"])));
    }
    if method == "server/discover" || (script.eras == Eras::Modern && incoming.id.is_some()) {
        // Without its metadata a modern request is malformed to a modern server and unknown to a legacy one.
        return Some(match script.eras {
            Eras::Legacy => (200, error(-32601, "method not found")),
            Eras::Modern | Eras::Both => (400, error(-32602, "`_meta` lacks the protocol version")),
        });
    }
    None
}

fn modern_refusal(incoming: &Incoming, method: &str) -> Option<(u16, Value)> {
    let version = incoming.meta("io.modelcontextprotocol/protocolVersion").unwrap_or_default();
    if version != MODERN {
        return Some((400, unsupported(&version)));
    }
    if incoming.meta("io.modelcontextprotocol/clientCapabilities").is_none_or(|value| !value.is_object()) {
        return Some((400, error(-32602, "`_meta` lacks the client's capabilities")));
    }
    let gone = ["initialize", "ping", "logging/setLevel", "resources/subscribe"];
    gone.contains(&method).then(|| (404, error(-32601, "method not found")))
}

fn unsupported(requested: &Value) -> Value {
    json!({ "code": -32022, "message": "unsupported protocol version",
            "data": { "supported": [MODERN], "requested": requested } })
}

/// The revisions a script speaks in the legacy era.
pub(super) fn versions(script: &Script) -> Vec<&str> {
    if script.versions.is_empty() { LEGACY.to_vec() } else { script.versions.iter().map(String::as_str).collect() }
}

/// The usual answer to a request; `None` for a notification.
pub(super) fn usual(script: &Script, tools: &[Box<RawValue>], incoming: &Incoming) -> Option<String> {
    incoming.id.as_ref()?;
    let reply = match incoming.method.as_deref()? {
        "initialize" => initialize(script, incoming),
        "server/discover" => Ok(json!({ "supportedVersions": [MODERN], "capabilities": { "tools": {} } }).to_string()),
        "ping" => Ok("{}".to_owned()),
        "tools/list" => Ok(page(script, tools, incoming)),
        _ => Err(error(-32601, "method not found")),
    };
    Some(match reply {
        Ok(result) => incoming.result(&decorated(script, incoming, &result)),
        Err(error) => incoming.error(&error),
    })
}

fn initialize(script: &Script, incoming: &Incoming) -> Result<String, Value> {
    let asked = incoming.params()["protocolVersion"].as_str().unwrap_or_default().to_owned();
    let versions = versions(script);
    let version = if versions.contains(&asked.as_str()) { asked.as_str() } else { versions[0] };
    if version != asked && script.on_mismatch == Mismatch::Refuse {
        return Err(mismatch(&versions));
    }
    Ok(json!({
        "protocolVersion": version,
        "capabilities": { "tools": { "listChanged": true } },
        "serverInfo": { "name": "fake", "version": "0" },
    })
    .to_string())
}

/// How a server says that it lacks a revision.
pub(super) fn mismatch(versions: &[&str]) -> Value {
    error(-32602, &format!("unsupported protocol version (supported versions: {})", versions.join(", ")))
}

fn page(script: &Script, tools: &[Box<RawValue>], incoming: &Incoming) -> String {
    let size = if script.page == 0 { tools.len().max(1) } else { script.page };
    let first = incoming.params()["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let shown: Vec<&str> = tools.iter().skip(first).take(size).map(|raw| raw.get()).collect();
    let next = first + size;
    let cursor = if next < tools.len() { format!(r#","nextCursor":"{next}""#) } else { String::new() };
    format!(r#"{{"tools":[{}]{cursor}}}"#, shown.join(","))
}

/// A result with what the modern era wants on it.
pub(super) fn decorated(script: &Script, incoming: &Incoming, result: &str) -> String {
    if !incoming.is_modern(script) {
        return result.to_owned();
    }
    let extra = r#""resultType":"complete","ttlMs":0,"cacheScope":"private""#;
    let rest = result.trim_start().strip_prefix('{').expect("a result is an object");
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    format!("{{{extra}{comma}{rest}")
}
