//! Interceptors that do what their names say, and write down what they were shown.

use std::sync::{Arc, Mutex};

use caribou_core::config::{InterceptorEntry, Secret};
use caribou_core::ids::ServerName;
use caribou_ports::BoxFuture;
use caribou_ports::interceptor::{
    Before, InterceptedCall, Interceptor, InterceptorError, InterceptorHeader, Interceptors,
};
use serde_json::value::RawValue;

use crate::fake::raw;

type Log = Arc<Mutex<Vec<String>>>;

/// Makes them, and remembers for which servers.
#[derive(Default)]
pub(crate) struct Scripts {
    pub(crate) made: Log,
    pub(crate) seen: Log,
}

impl Scripts {
    /// What was seen since the last look.
    pub(crate) fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    /// The instances made since the last look.
    pub(crate) fn made(&self) -> Vec<String> {
        let mut made = std::mem::take(&mut *self.made.lock().unwrap());
        made.sort_unstable();
        made
    }
}

impl Interceptors for Scripts {
    fn build(&self, entry: &InterceptorEntry, server: &ServerName) -> Result<Option<Arc<dyn Interceptor>>, String> {
        let name = entry.target.trim_start_matches("builtin:").to_owned();
        match name.as_str() {
            "unwilling" => return Ok(None),
            "broken" => return Err("it lacks its licence".to_owned()),
            _ => {}
        }
        self.made.lock().unwrap().push(format!("{server}:{name}"));
        Ok(Some(Arc::new(Script { name, seen: self.seen.clone() })))
    }
}

struct Script {
    name: String,
    seen: Log,
}

impl Script {
    fn note(&self, when: &str, call: &InterceptedCall, result: &str) {
        let pairs = |pairs: &[(String, Secret)]| {
            pairs.iter().map(|(name, value)| format!(" {name}={}", value.expose())).collect::<String>()
        };
        let arguments = call.arguments.as_ref().map_or("", |arguments| arguments.get());
        let (headers, secrets) = (pairs(&call.headers), pairs(&call.secrets));
        self.seen.lock().unwrap().push(format!("{when} {}: {arguments}{headers}{secrets}{result}", self.name));
    }

    fn error(&self) -> InterceptorError {
        InterceptorError(format!("interceptor `{}` cannot be reached", self.name))
    }
}

fn header(name: &str, value: &str, per_call: bool) -> InterceptorHeader {
    InterceptorHeader { name: name.to_owned(), value: Secret::new(value), per_call }
}

impl Interceptor for Script {
    fn before<'a>(&'a self, call: &'a InterceptedCall) -> BoxFuture<'a, Result<Before, InterceptorError>> {
        Box::pin(async move {
            self.note("before", call, "");
            let proceed = |arguments: Option<&str>, headers| Before::Proceed { arguments: arguments.map(raw), headers };
            Ok(match self.name.as_str() {
                "answer" => Before::Answer(raw(r#"{"content":[{"type":"text","text":"of interceptor"}]}"#)),
                "answer-nonsense" => Before::Answer(raw("7")),
                "deny" => Before::Deny("not on Sundays".to_owned()),
                "down" => return Err(self.error()),
                "hang" => std::future::pending().await,
                "panic" => panic!("it was told to"),
                "arguments" => proceed(Some(r#"{"by":1.0}"#), Vec::new()),
                "arguments-nonsense" => proceed(Some("[1]"), Vec::new()),
                "illegal" => proceed(None, vec![header("X-Bad", "hunter22\r\nX-Evil: 1", false)]),
                "protocol" => proceed(None, vec![header("Mcp-Session-Id", "hunter22", false)]),
                "many" => proceed(None, (0..65).map(|n| header(&format!("X-{n}"), "v", true)).collect()),
                "tenant" => proceed(None, vec![header("X-Tenant", "first", false)]),
                "tenant-too" => proceed(None, vec![header("x-tenant", "second", false)]),
                "number" => proceed(None, vec![header("X-Number", call.request_id.as_str(), true)]),
                _ => proceed(None, Vec::new()),
            })
        })
    }

    fn after<'a>(
        &'a self,
        call: &'a InterceptedCall,
        result: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, InterceptorError>> {
        Box::pin(async move {
            self.note("after", call, &format!(" -> {}", result.get()));
            match self.name.as_str() {
                "deaf" => Err(self.error()),
                "result" => Ok(raw(r#"{"content":[],"replaced":true}"#)),
                "result-nonsense" => Ok(raw("7")),
                _ => Ok(result),
            }
        })
    }
}
