//! The modern era (2026-07-28): no handshake, every request carries its own metadata (mcp.md §2).
//!
//! Owns the `_meta` fields of our requests and the meaning of a `DiscoverResult`. Whether a server is modern is found
//! out in `probe`.

use std::sync::Arc;

use caribou_core::config::ServerConfig;
use caribou_core::era::{Era, MODERN_VERSION};
use caribou_core::task::native::{TASKS_EXTENSION, announces};
use caribou_ports::mcp::CallError;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::Greeting;
use super::handshake::client_info;
use crate::wire::meta::{self, Member, Meta};
use crate::wire::versions;

/// The method that asks a modern server what it is.
pub(crate) const DISCOVER: &str = "server/discover";

/// The `_meta` fields of every modern request to `server`.
pub(crate) fn protocol_meta(server: &ServerConfig) -> Vec<(&'static str, Box<RawValue>)> {
    fields(&configured(server))
}

/// What is configured. What could be answered besides is not declared by default: a question in place of the result of
/// a plain call would reach nobody.
fn configured(server: &ServerConfig) -> Map<String, Value> {
    server.client_capabilities.clone().unwrap_or_default()
}

/// The same of a request by somebody who can follow tasks: the extension is declared request by request. A server with
/// these `capabilities` that announces it may ask questions in its tasks.
pub(crate) fn tasks_meta(server: &ServerConfig, capabilities: Option<&RawValue>) -> Vec<(&'static str, Box<RawValue>)> {
    let mut declared = if announces(capabilities) { server.task_profile() } else { configured(server) };
    let extensions = declared.entry("extensions").or_insert_with(|| json!({}));
    if let Some(extensions) = extensions.as_object_mut() {
        extensions.entry(TASKS_EXTENSION).or_insert_with(|| json!({}));
    }
    fields(&declared)
}

fn fields(declared: &Map<String, Value>) -> Vec<(&'static str, Box<RawValue>)> {
    let fields = [
        ("io.modelcontextprotocol/protocolVersion", to_raw_value(MODERN_VERSION)),
        ("io.modelcontextprotocol/clientCapabilities", to_raw_value(declared)),
        ("io.modelcontextprotocol/clientInfo", to_raw_value(&client_info())),
    ];
    // Strings and JSON objects always serialise.
    fields.into_iter().filter_map(|(key, value)| value.ok().map(|value| (key, value))).collect()
}

/// The parameters of `subscriptions/listen` that ask for changes of these lists (mcp.md §5).
///
/// # Errors
/// Never in practice: they are text of ours.
pub(crate) fn listen_params(server: &ServerConfig, lists: Announced) -> Result<Box<RawValue>, CallError> {
    let wanted = to_raw_value(&lists.filter()).map_err(|error| CallError::NotSent(error.to_string()))?;
    let protocol = protocol_meta(server);
    meta::params(&[("notifications", Member::Raw(&wanted))], Meta { protocol: &protocol, ..Meta::default() })
}

/// Reads a `DiscoverResult` that offers the revision we speak; `None` for everything else.
pub(crate) fn greeting(result: &RawValue) -> Option<Greeting> {
    #[derive(Deserialize)]
    struct DiscoverResult {
        #[serde(default)]
        capabilities: Option<Box<RawValue>>,
        #[serde(default, rename = "_meta")]
        meta: Option<ResultMeta>,
    }
    #[derive(Deserialize)]
    struct ResultMeta {
        #[serde(default, rename = "io.modelcontextprotocol/serverInfo")]
        server_info: Option<Box<RawValue>>,
    }
    if !versions::holds_modern(&versions::of_discover_result(result)?) {
        return None;
    }
    let read: DiscoverResult = serde_json::from_str(result.get()).ok()?;
    Some(Greeting {
        era: Era::Modern,
        version: MODERN_VERSION.to_owned(),
        server_info: read.meta.and_then(|meta| meta.server_info).map(Arc::from),
        capabilities: read.capabilities.map(Arc::from),
    })
}

/// The lists whose changes a server says that it tells of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

impl Announced {
    /// As its capabilities say.
    pub(crate) fn of(capabilities: Option<&RawValue>) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Capabilities {
            tools: Kind,
            prompts: Kind,
            resources: Kind,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Kind {
            list_changed: bool,
        }
        let read = capabilities.and_then(|capabilities| serde_json::from_str::<Capabilities>(capabilities.get()).ok());
        let Capabilities { tools, prompts, resources } = read.unwrap_or_default();
        Self { tools: tools.list_changed, prompts: prompts.list_changed, resources: resources.list_changed }
    }

    /// Whether there is any.
    pub(crate) fn any(self) -> bool {
        self.tools || self.prompts || self.resources
    }

    /// The filter that asks for them.
    fn filter(self) -> Map<String, Value> {
        let kinds = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        kinds.into_iter().filter(|(_, is_wanted)| *is_wanted).map(|(name, _)| (name.to_owned(), true.into())).collect()
    }
}
