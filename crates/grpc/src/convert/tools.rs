//! Lists of tools.

use caribou_proto::v1;
use caribou_runtime::{FoundTools, ListedTool, ListedTools};

/// All tools of a listing.
pub(crate) fn listed(listed: &ListedTools) -> v1::ListToolsResponse {
    let failed = listed
        .failed
        .iter()
        .map(|(server, reason)| v1::FailedServer { server: server.as_str().to_owned(), reason: reason.clone() });
    v1::ListToolsResponse {
        tools: listed.tools.iter().map(tool).collect(),
        deferred: listed.deferred.iter().map(|name| (**name).to_owned()).collect(),
        pending: listed.pending.iter().map(|server| server.as_str().to_owned()).collect(),
        failed: failed.collect(),
    }
}

/// What a search found.
pub(crate) fn found(found: &FoundTools) -> v1::SearchToolsResponse {
    v1::SearchToolsResponse { tools: found.tools.iter().map(tool).collect() }
}

fn tool(tool: &ListedTool) -> v1::Tool {
    v1::Tool {
        name: (*tool.name).to_owned(),
        server: tool.server.as_str().to_owned(),
        raw_name: (*tool.raw_name).to_owned(),
        tool: tool.tool.get().to_owned(),
    }
}
