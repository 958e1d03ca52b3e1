//! `caribou config add`: adds one server.

use std::process::ExitCode;

use anyhow::Context as _;
use axum::http::Method;
use clap::Args;
use serde_json::{Map, Value, json};

use super::fields;
use super::stored::{change, send};
use crate::commands::arguments::Target;
use crate::commands::usage::Usage;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// What the server is to be called
    name: String,
    /// Its fields, such as command=uvx 'args=["mcp-server-time"]'
    #[arg(value_name = "KEY=VALUE", required_unless_present = "entry")]
    fields: Vec<String>,
    /// The whole entry as a JSON object; fields are laid over it
    #[arg(long, value_name = "JSON")]
    entry: Option<String>,
    #[command(flatten)]
    target: Target,
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { name, fields, entry, target } = arguments;
    let mut server: Map<String, Value> = match entry {
        Some(entry) => serde_json::from_str(&entry).ok().context(Usage("--entry is not a JSON object"))?,
        None => Map::new(),
    };
    fields::lay(&mut server, &fields)?;
    let body = json!({"mcp_servers": {&name: server}});
    let add = async |gateway: &_| send(gateway, Method::POST, "/api/mcp/config/servers", &body, None).await;
    change(&target, add, &format!("{name}: added")).await?;
    Ok(ExitCode::SUCCESS)
}
