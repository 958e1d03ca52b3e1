//! Whether every server comes up and lists its tools, all at once as far as the settings allow. No tool is called, and
//! nothing is kept.
//!
//! A server whose refresh token rotates is left alone: its token would be spent and the successor be lost with this
//! process (invariant O2).

use std::time::Duration;

use caribou_core::config::{Document, OAuthGrant, ServerConfig, ServerEntry};
use serde::Deserialize;

use super::finding::Finding;
use super::ground::Ground;
use crate::assemble::Replica;
use crate::commands::gateway::Gateway;
use crate::settings::{Auth, Settings};
use crate::telemetry::Telemetry;

/// What the settings of a server are used for.
const SETTINGS: [&str; 6] = ["stdio", "network", "protocol", "calls", "sessions", "threads"];

/// How much longer than its servers the listing may take.
const MARGIN: Duration = Duration::from_secs(2);

/// How long closing may take: children that do not leave are killed.
const CLOSE: Duration = Duration::from_secs(20);

/// The answer of `GET /api/mcp/servers`, as far as it is judged.
#[derive(Deserialize)]
struct Answer {
    servers: Vec<Server>,
}

#[derive(Deserialize)]
struct Server {
    name: String,
    transport: Option<String>,
    state: String,
    absent: Option<String>,
    version: Option<String>,
    tools: usize,
    last_error: Option<String>,
    warnings: Vec<String>,
    stderr_tail: String,
}

pub(super) async fn check(ground: &Ground, document: Option<&Document>) -> Vec<Finding> {
    if ground.offline {
        return vec![Finding::skipped("servers are left alone", Some("leave out `--offline`"))];
    }
    if let Some(spoiled) = ground.spoiled(&SETTINGS) {
        return vec![spoiled];
    }
    let Some(document) = document else { return vec![Finding::skipped("no servers are known", None)] };
    let is_enabled = |entry: &&ServerEntry| entry.config.as_ref().is_ok_and(|one| one.enabled);
    let (rotating, asked): (Vec<ServerEntry>, Vec<ServerEntry>) = document
        .servers
        .iter()
        .filter(is_enabled)
        .cloned()
        .partition(|entry| entry.config.as_ref().is_ok_and(|one| has_refresh_token(one)));
    let mut found: Vec<Finding> = rotating.iter().map(left_alone).collect();
    if !asked.is_empty() {
        match ask(ground, asked).await {
            Ok(servers) => found.extend(servers.iter().map(|server| told(ground, server))),
            Err(error) => found.push(Finding::failed(format!("{error:#}"), "mend what is named; no server was asked")),
        }
    }
    if found.is_empty() {
        found.push(Finding::ok("no server is switched on"));
    }
    found
}

fn has_refresh_token(server: &ServerConfig) -> bool {
    server.oauth.as_ref().is_some_and(|oauth| oauth.enabled && oauth.grant == OAuthGrant::RefreshToken)
}

fn left_alone(entry: &ServerEntry) -> Finding {
    let mend = "ask a replica that runs: `caribou servers --server URL`";
    Finding::skipped("its refresh token would be spent by asking it from here", Some(mend)).about(entry.name.as_str())
}

async fn ask(ground: &Ground, servers: Vec<ServerEntry>) -> anyhow::Result<Vec<Server>> {
    let settings = for_a_look(&ground.settings, ground.deadline);
    let telemetry = Telemetry::start(&settings)?;
    let replica = Box::pin(Replica::to_look(&settings, servers)).await?;
    let gateway = Gateway::inside(replica, &settings, telemetry);
    // Servers that fail, and those that are not done in time, are what the second question shows.
    let _ = tokio::time::timeout(ground.deadline + MARGIN, gateway.get("/api/mcp/tools")).await;
    let answer = gateway.get("/api/mcp/servers").await;
    let _ = tokio::time::timeout(CLOSE, gateway.close()).await;
    Ok(serde_json::from_slice::<Answer>(&answer?)?.servers)
}

/// Settings of a replica that lives for one look.
fn for_a_look(settings: &Settings, deadline: Duration) -> Settings {
    let mut settings = settings.clone();
    // What it would log stands in what is found.
    settings.log.level = "off".to_owned();
    settings.telemetry = Default::default();
    settings.calls.list_wait_seconds = deadline.as_secs_f64();
    settings.catalog.discover_at_start = false;
    settings.auth = Auth::default();
    settings
}

fn told(ground: &Ground, server: &Server) -> Finding {
    let is_local = server.transport.as_deref() == Some("stdio");
    let by_hand = match is_local {
        true => "start its command by hand and read what it writes to stderr",
        false => "see that its `url` answers from here, and that its credentials are right",
    };
    let found = match (server.state.as_str(), server.absent.as_deref()) {
        ("ready", Some("policy")) => Finding::warning(
            format!("guardrails deny all of its {} tools", server.tools),
            "look at `guardrails`, or switch the server off",
        ),
        ("ready", _) => ready(server),
        ("failed", _) => Finding::failed(failure(server), by_hand),
        _ => Finding::failed(
            format!("did not list its tools within {} s", ground.deadline.as_secs_f64()),
            format!("{by_hand}; a first start of npx or uvx may download for longer: `--timeout 120`"),
        ),
    };
    found.about(&server.name)
}

fn ready(server: &Server) -> Finding {
    let revision = server.version.as_deref().map_or_else(String::new, |version| format!(", MCP {version}"));
    let what = format!("{} tools{revision}", server.tools);
    match server.warnings.first() {
        None => Finding::ok(what),
        Some(warning) => Finding::warning(format!("{what}; {warning}"), "mend the server, or leave it as it is"),
    }
}

/// The reason, and the last thing that it wrote.
fn failure(server: &Server) -> String {
    let reason = server.last_error.as_deref().and_then(|error| error.lines().next()).unwrap_or("it does not come up");
    match server.stderr_tail.lines().rfind(|line| !line.trim().is_empty()) {
        Some(last) if !reason.contains(last.trim()) => format!("{reason}; its last words: {}", last.trim()),
        _ => reason.to_owned(),
    }
}
