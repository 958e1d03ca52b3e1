//! Whether the programs of stdio servers are there, and what the launch policy says of them. The policy binds changes
//! over the API only: a file may express anything.

use caribou_core::config::{Document, Stdio, Transport};
use caribou_core::launch::{Allowlist, Request, judge};

use super::finding::Finding;
use super::ground::Ground;
use crate::guard;
use crate::settings::ConfigOrigin;

pub(super) fn check(ground: &Ground, document: Option<&Document>) -> Vec<Finding> {
    let Some(document) = document else { return vec![Finding::skipped("no servers are known", None)] };
    let allowlist = Allowlist::from_env(&|name| std::env::var(name).ok());
    let mut found = Vec::new();
    for server in document.servers.iter().filter_map(|entry| entry.config.as_ref().ok()).filter(|one| one.enabled) {
        let (Transport::Stdio(stdio), Some(request)) = (&server.transport, Request::of(server)) else { continue };
        let finding = match startable(stdio) {
            Err(why) => Finding::failed(why, "install it, or write its full path as `command`"),
            Ok(()) => match judge(&request, &allowlist) {
                Ok(()) => Finding::ok("its program is there"),
                Err(refusal) if ground.settings.config.source == ConfigOrigin::Database => Finding::warning(
                    format!("its program is there, but a change of this server would be refused: {refusal}"),
                    "name it in CARIBOU_MCP_STDIO_COMMAND_ALLOWLIST, or start it by npx or uvx",
                ),
                Err(refusal) => {
                    Finding::ok(format!("its program is there; over the API it would be refused: {refusal}"))
                }
            },
        };
        found.push(finding.about(server.name.as_str()));
    }
    if found.is_empty() {
        found.push(Finding::ok("no server is started here"));
    }
    found
}

/// Looked up as its child would be.
fn startable(stdio: &Stdio) -> Result<(), String> {
    let own = stdio.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.expose().to_owned());
    guard::could_start(&stdio.command, own.or_else(|| std::env::var("PATH").ok()), stdio.cwd.clone())
}
