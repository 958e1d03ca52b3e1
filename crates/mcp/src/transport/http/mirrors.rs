//! Which arguments of which tools are mirrored in headers, learnt from a server's last tool list (mcp.md §3.1).
//!
//! Owns the table of one server, shared by its sessions: the session that calls a tool need not be the one that listed
//! it. A belief: when the server finds a header missing or wrong, the list is read again. Bounded by the cap on tools.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use caribou_ports::mcp::ToolListing;
use http::HeaderMap;
use serde_json::value::RawValue;

use crate::wire::headers::{METHOD, NAME, mirrored};
use crate::wire::params::{MirroredParam, member, mirrored_params, param_headers};

/// Tools with mirrored arguments that are known where pages are learnt one by one.
const MAX_KNOWN: usize = 10_000;

/// The table.
#[derive(Default)]
pub(crate) struct Mirrors {
    by_tool: RwLock<HashMap<String, Arc<[MirroredParam]>>>,
}

impl Mirrors {
    /// Learns from a complete list, and takes the tools out that must not be shown over HTTP.
    pub(crate) fn learn(&self, listing: &mut ToolListing) {
        let mut by_tool = HashMap::new();
        let mut warnings = Vec::new();
        listing.tools.retain(|tool| {
            let name = || member(tool, "name").and_then(|name| serde_json::from_str::<String>(name.get()).ok());
            match mirrored_params(tool) {
                Ok(params) if params.is_empty() => true,
                Ok(params) => {
                    by_tool.extend(name().map(|name| (name, Arc::from(params))));
                    true
                }
                Err(why) => {
                    warnings.push(format!("tool {:?} is left out: {why}", name().unwrap_or_default()));
                    false
                }
            }
        });
        listing.warnings.extend(warnings);
        *self.by_tool.write().unwrap_or_else(PoisonError::into_inner) = by_tool;
    }

    /// Learns from one page of a list that is passed on as it is: what is known of other tools stays.
    pub(crate) fn learn_more<'t>(&self, tools: impl IntoIterator<Item = &'t RawValue>) {
        let mut by_tool = self.by_tool.write().unwrap_or_else(PoisonError::into_inner);
        for tool in tools {
            let name = member(tool, "name").and_then(|name| serde_json::from_str::<String>(name.get()).ok());
            let Some(name) = name else { continue };
            match mirrored_params(tool) {
                Ok(params) if !params.is_empty() && by_tool.len() < MAX_KNOWN => {
                    by_tool.insert(name, Arc::from(params));
                }
                _ => drop(by_tool.remove(&name)),
            }
        }
    }

    /// Adds the mirrored headers of one request: `tool` is the raw name of a `tools/call`.
    pub(crate) fn add(&self, headers: &mut HeaderMap, method: &str, tool: Option<&str>, params: Option<&RawValue>) {
        headers.insert(METHOD, mirrored(method));
        let Some(tool) = tool else { return };
        headers.insert(NAME, mirrored(tool));
        let by_tool = self.by_tool.read().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = by_tool.get(tool).cloned() else { return };
        drop(by_tool);
        let arguments = params.and_then(|params| member(params, "arguments"));
        headers.extend(param_headers(&known, arguments));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(json: &str) -> Arc<RawValue> {
        Arc::from(RawValue::from_string(json.to_owned()).unwrap())
    }

    #[test]
    fn a_tool_with_a_bad_annotation_is_left_out_with_a_warning_and_the_others_stay() {
        let good = r#"{"name":"good","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"R"}}}}"#;
        let bad = r#"{"name":"bad","inputSchema":{"properties":{"r":{"type":"number","x-mcp-header":"R"}}}}"#;
        let plain = r#"{"name":"plain","inputSchema":{"type":"object"}}"#;
        let mut listing = ToolListing { tools: [good, bad, plain].map(tool).into(), warnings: Vec::new() };
        let mirrors = Mirrors::default();
        mirrors.learn(&mut listing);
        let left: Vec<&str> = listing.tools.iter().map(|tool| tool.get()).collect();
        assert_eq!(left, [good, plain]);
        assert!(listing.warnings.len() == 1 && listing.warnings[0].contains("\"bad\""), "{:?}", listing.warnings);

        let mut headers = HeaderMap::new();
        let params = tool(r#"{"name":"good","arguments":{"r":"eu"}}"#);
        mirrors.add(&mut headers, "tools/call", Some("good"), Some(&params));
        assert_eq!(
            (&headers["mcp-method"], &headers["mcp-name"], &headers["mcp-param-r"]),
            (&"tools/call".parse().unwrap(), &"good".parse().unwrap(), &"eu".parse().unwrap())
        );
    }
}
