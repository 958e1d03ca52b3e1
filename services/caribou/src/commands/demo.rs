//! `caribou demo`: shows step by step what Caribou does, then serves so that one can try it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::gateway::Gateway;
use super::output;
use super::tools::call::Called;
use super::tools::list::{Listed, Listing};
use crate::assemble::{self, Replica};
use crate::demo;
use crate::doors::{self, Doors};
use crate::lifecycle::{self, Signals};
use crate::settings::Settings;
use crate::telemetry::Telemetry;

mod report;

/// Who calls the counter, and in which thread.
const CALLS: [(&str, &str); 3] = [("ann", "kitchen"), ("ann", "kitchen"), ("ann", "garden")];

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// End after the calls
    #[arg(long)]
    once: bool,
    /// Where to serve afterwards; by default 127.0.0.1:8750, or a free port when that one is taken
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "once")]
    listen: Option<SocketAddr>,
    /// Print what the calls answered as JSON and end
    #[arg(long, conflicts_with = "listen")]
    json: bool,
}

/// One call of the demo and what came back.
#[derive(Serialize)]
struct Call {
    user_id: &'static str,
    thread_id: &'static str,
    tool: String,
    answer: Box<RawValue>,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::take()?;
    let mut settings = Settings::default();
    "warn".clone_into(&mut settings.log.level);
    let telemetry = Telemetry::start(&settings)?;
    let folder = tempfile::tempdir().context("no folder for the demo server")?;
    settings.data_dir = folder.path().to_owned();
    settings.extensions_config_path = Some(write_servers(folder.path())?);
    // A report is looked after every second: nobody wants to wait longer in a demo.
    settings.mcp_tasks.poll_interval_seconds = 1;
    let servers = assemble::follow_servers(&settings, None).await?;
    let store = assemble::open_store(&settings).await?;
    let replica = Box::pin(Replica::start(&settings, servers, Some(store), None, telemetry.boot.clone())).await?;
    let gateway = Gateway::inside(replica, &settings, telemetry);
    let shown = tokio::select! {
        shown = show(&gateway, arguments.json) => shown,
        () = signals.next() => Err(anyhow::anyhow!("interrupted")),
    };
    if arguments.once || arguments.json || shown.is_err() {
        gateway.close().await;
        return shown.map(|_| ExitCode::SUCCESS);
    }
    Box::pin(serve(arguments.listen, shown?, gateway, signals)).await?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the demo's configuration, which is read and can be changed as any other.
fn write_servers(folder: &Path) -> anyhow::Result<PathBuf> {
    let file = folder.join("extensions_config.json");
    std::fs::write(&file, demo::configuration(&std::env::current_exe()?, folder))?;
    Ok(file)
}

/// Lists and calls; answers with the name of the counter.
async fn show(gateway: &Gateway, json: bool) -> anyhow::Result<String> {
    let listing = output::wait("starting the demo server", gateway.get("/api/mcp/tools")).await?;
    let Listing { mut tools, .. } = serde_json::from_slice(&listing)?;
    // Not those by which an agent looks after its tasks.
    tools.retain(|tool| tool.server == demo::SERVER_NAME);
    let counter = tools.iter().find(|tool| tool.raw_name == "counter").context("the demo server lists no counter")?;
    if !json {
        introduce(&tools)?;
    }
    let mut calls = Vec::new();
    for (user_id, thread_id) in CALLS {
        let body = json!({"name": counter.name, "arguments": {}, "user_id": user_id, "thread_id": thread_id});
        let answer: Box<RawValue> =
            serde_json::from_slice(&gateway.post("/api/mcp/tools/call", body.to_string()).await?)?;
        if !json {
            let called: Called = serde_json::from_str(answer.get())?;
            output::line(format_args!("     {:<9}{:<16}→ {}", user_id, thread_id, called.result.text()))?;
        }
        calls.push(Call { user_id, thread_id, tool: counter.name.clone(), answer });
    }
    if !json {
        output::line("     Two threads, two sessions, two counters: each has a process of its own.\n")?;
    }
    let submit =
        tools.iter().find(|tool| tool.raw_name == demo::SUBMIT_TOOL).context("the demo server lists no report")?;
    let task = report::show(gateway, &submit.name, json).await?;
    if json {
        let listing: Box<RawValue> = serde_json::from_slice(&listing)?;
        output::line(serde_json::to_string(&Shown { listing: &listing, calls: &calls, task: &task })?)?;
    }
    Ok(counter.name.clone())
}

/// The whole demo for programs.
#[derive(Serialize)]
struct Shown<'a> {
    listing: &'a RawValue,
    calls: &'a [Call],
    /// The report, as it ended.
    task: &'a RawValue,
}

fn introduce(tools: &[Listed]) -> std::io::Result<()> {
    output::line("\n  Caribou, with one MCP server of its own.\n")?;
    output::line("  1  The server runs as a child process, like any other stdio server.")?;
    output::line(format_args!("     {:<9}{} tools\n", demo::SERVER_NAME, tools.len()))?;
    output::line("  2  What it can do:")?;
    for tool in tools {
        output::line(format_args!("     {:<15}{}", tool.raw_name, tool.summary()))?;
    }
    output::line(format_args!("\n  3  Three calls of {}:", "counter"))
}

async fn serve(listen: Option<SocketAddr>, counter: String, gateway: Gateway, signals: Signals) -> anyhow::Result<()> {
    let Gateway::Local { router, replica, telemetry } = gateway else { return Ok(()) };
    let Settings { listen: wanted, auth, .. } = Settings::default();
    let listener = match listen {
        Some(address) => doors::listen(address, &auth).await?,
        None => match doors::listen(wanted, &auth).await {
            Ok(listener) => listener,
            Err(_) => doors::listen(SocketAddr::new(wanted.ip(), 0), &auth).await?,
        },
    };
    let base = format!("http://{}", listener.local_addr()?);
    output::line(format_args!("  5  Try it yourself; Caribou serves {base} until you press Ctrl-C.\n"))?;
    for line in curl_lines(&base, &counter) {
        output::line(format_args!("     {line}"))?;
    }
    output::line(format_args!("\n     In a browser: {base}/console"))?;
    output::line("")?;
    Box::pin(lifecycle::serve(Doors::only(listener), router, *replica, telemetry, signals)).await
}

/// Lines to paste into a shell.
fn curl_lines(base: &str, counter: &str) -> [String; 4] {
    let body = json!({"name": counter, "arguments": {}, "user_id": "ann", "thread_id": "kitchen"});
    [
        format!("curl -s {base}/api/mcp/tools"),
        format!("curl -s {base}/api/mcp/tools/call -H 'content-type: application/json' -d '{body}'"),
        format!("curl -s {base}/api/mcp/sessions"),
        format!("curl -s '{base}/api/threads/{}/mcp-tasks?user_id={}'", report::THREAD, report::USER),
    ]
}
