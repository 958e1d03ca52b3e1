//! One session with one server, the same over every transport.
//!
//! Owns the meaning of MCP above the channel: how a tool is called and listed, what goes into `_meta`, how large an
//! answer may be. Arguments and results pass as raw text (invariant W1); a call is sent once (S2).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use caribou_core::config::ServerConfig;
use caribou_core::era::Era;
use caribou_ports::BoxFuture;
use caribou_ports::mcp::{CallError, Disconnect, Session, SessionFacts, ToolCall, ToolListing};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::channel::{Channel, Opened, RequestExtras};
use crate::era::stateless;
use crate::listing;
use crate::wire::meta::{self, Member, Meta};
use crate::wire::progress::ProgressRoute;

/// A session over a channel.
pub(crate) struct ChannelSession {
    channel: Arc<dyn Channel>,
    facts: SessionFacts,
    /// The modern era's `_meta` fields; empty in the legacy era.
    protocol_meta: Vec<(&'static str, Box<RawValue>)>,
    max_result_bytes: usize,
    last_token: AtomicU64,
}

impl ChannelSession {
    /// The session with `server` over what was opened; a larger result than `max_result_bytes` is refused.
    pub(crate) fn new(opened: Opened, server: &ServerConfig, max_result_bytes: usize) -> Self {
        let Opened { channel, facts } = opened;
        let protocol_meta = match facts.era {
            Era::Legacy => Vec::new(),
            Era::Modern => stateless::protocol_meta(server),
        };
        Self { channel, facts, protocol_meta, max_result_bytes, last_token: AtomicU64::new(0) }
    }

    async fn call(&self, call: ToolCall) -> Result<Box<RawValue>, CallError> {
        let ToolCall { name, arguments, meta: extra, headers, progress } = call;
        let progress = progress.map(|sink| ProgressRoute { token: self.next_token(), sink });
        let meta =
            Meta { protocol: &self.protocol_meta, extra: &extra, progress: progress.as_ref().map(|route| route.token) };
        let name_member = ("name", Member::Text(&name));
        let params = match &arguments {
            Some(arguments) => meta::params(&[name_member, ("arguments", Member::Raw(arguments))], meta)?,
            None => meta::params(&[name_member], meta)?,
        };
        drop(arguments);
        let extras = RequestExtras { progress, name: Some(name), headers, ..RequestExtras::default() };
        let result = self.channel.request("tools/call", Some(params), extras).await?;
        if result.get().len() > self.max_result_bytes {
            return Err(CallError::TooLarge { limit: self.max_result_bytes });
        }
        if self.facts.era == Era::Modern {
            check_result_type(&result)?;
        }
        Ok(result)
    }

    /// Tokens are unique in the session: those of callers never travel.
    fn next_token(&self) -> u64 {
        self.last_token.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn listing_meta(&self) -> Meta<'_> {
        Meta { protocol: &self.protocol_meta, ..Meta::default() }
    }
}

/// A result of a kind that we do not know is an invalid answer (mcp.md §2.5); an absent kind means complete.
fn check_result_type(result: &RawValue) -> Result<(), CallError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kind {
        #[serde(default)]
        result_type: Option<String>,
    }
    let kind = serde_json::from_str::<Kind>(result.get()).ok().and_then(|kind| kind.result_type);
    match kind.as_deref() {
        None | Some("complete" | "input_required" | "task") => Ok(()),
        Some(other) => Err(CallError::Malformed(format!("the server answered with a result of type {other:.40?}"))),
    }
}

impl Session for ChannelSession {
    fn facts(&self) -> &SessionFacts {
        &self.facts
    }

    fn call_tool(&self, call: ToolCall) -> BoxFuture<'_, Result<Box<RawValue>, CallError>> {
        Box::pin(self.call(call))
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<ToolListing, CallError>> {
        Box::pin(listing::list_tools(self.channel.as_ref(), self.listing_meta()))
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.channel.close()
    }

    fn ended(&self) -> BoxFuture<'static, Disconnect> {
        self.channel.ended()
    }

    fn stderr_tail(&self) -> String {
        self.channel.stderr_tail()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Says, Scripted, stdio_server};

    fn session(era: Era, script: impl IntoIterator<Item = Says>) -> (Arc<Scripted>, ChannelSession) {
        let channel = Scripted::new(script);
        let facts = SessionFacts {
            era,
            version: "v".to_owned(),
            stateful: true,
            pid: None,
            server_info: None,
            capabilities: None,
        };
        let opened = Opened { channel: channel.clone(), facts };
        (channel, ChannelSession::new(opened, &stdio_server(&["x"]), 100))
    }

    fn call(arguments: Option<&str>) -> ToolCall {
        let arguments = arguments.map(|json| RawValue::from_string(json.to_owned()).expect("valid JSON"));
        ToolCall { name: "t".into(), arguments, meta: Vec::new(), headers: Vec::new(), progress: None }
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
}
