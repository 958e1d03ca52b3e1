//! Caribou inside a Rust agent: no service, no port, the same sessions.
//!
//! ```sh
//! cargo run -p caribou-runtime --example embed -- uvx mcp-server-time
//! ```
//!
//! Starts the given stdio server for two threads of one user, lists its tools and says which session answered. The
//! children are plain children of this process; the `caribou` binary has a guard process for them instead.

use std::path::Path;
use std::sync::Arc;

use caribou_core::config::{self, Source};
use caribou_core::ids::{BootId, RequestId, Scope};
use caribou_core::task::native::Wish;
use caribou_mcp::{DirectHost, UpstreamOptions, Upstreams};
use caribou_runtime::{CallTool, Caller, Door, Options, RequestSecrets, Runtime, Shape};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let command = words.next().ok_or("name a stdio MCP server, such as: uvx mcp-server-time")?;
    let server = serde_json::json!({ "command": command, "args": words.collect::<Vec<_>>() });

    // The same document that the binary reads from `extensions_config.json`.
    let text = serde_json::json!({ "mcpServers": { "mine": server } }).to_string();
    let source = Source { file: Path::new("/embedded.json"), text: text.as_bytes() };
    let document = config::parse(&source, &|name| std::env::var(name).ok())
        .map_err(|problems| problems.iter().map(|problem| format!("{problem}\n")).collect::<String>())?;

    let boot = BootId::new("embedded");
    let upstreams = Upstreams::new(UpstreamOptions::new(boot.clone()), Arc::new(DirectHost))?;
    let runtime = Runtime::start(document.servers, Options::default(), upstreams, boot).await?;

    let listed = runtime.list_tools(&Caller::local(Door::Library), &Scope::new(None, None)).await?;
    for tool in &listed.tools {
        println!("{}", tool.name);
    }
    if let Some(tool) = listed.tools.first() {
        for thread in ["kitchen", "garden"] {
            let call = CallTool {
                name: tool.name.to_string(),
                arguments: None,
                meta: Vec::new(),
                caller: Caller::local(Door::Library),
                secrets: RequestSecrets::default(),
                run_id: None,
                tool_call_id: None,
                scope: Scope::new(Some("ann"), Some(thread)),
                task: Wish::Unsaid,
                timeout: None,
                progress: None,
                shape: Shape::Raw,
                request_id: RequestId::new(thread),
            };
            match runtime.call_tool(call).await {
                Ok(called) => println!("{thread}: {} answered by {:?}", called.result.get(), called.session),
                Err(error) => println!("{thread}: {error}"),
            }
        }
    }
    runtime.stop().await;
    Ok(())
}
