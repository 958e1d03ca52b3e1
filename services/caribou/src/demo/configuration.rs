//! The configuration of the demo: one server, which is this very program.

use std::path::Path;

use serde_json::json;

/// The demo server's key in `mcpServers`.
pub(crate) const SERVER_NAME: &str = "demo";

/// The hidden first word that makes this program the demo server.
pub(crate) const SERVER_WORD: &str = "demo-server";

/// The demo server's own name of the tool that begins a report in the background.
pub(crate) const SUBMIT_TOOL: &str = "report_submit";

/// A configuration document that starts `program` as the demo server in `folder`.
pub(crate) fn configuration(program: &Path, folder: &Path) -> String {
    let server = json!({
        "type": "stdio",
        "command": program,
        "args": [SERVER_WORD],
        "cwd": folder,
        "description": "Caribou's own demo server",
        "task_toolsets": [{
            "name": "report",
            "submit_tool": SUBMIT_TOOL,
            "status_tool": "report_status",
            "cancel_tool": "report_cancel",
            "input_tool": "report_input",
        }],
    });
    json!({ "mcpServers": { SERVER_NAME: server } }).to_string()
}
