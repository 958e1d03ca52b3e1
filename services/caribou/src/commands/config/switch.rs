//! `caribou config enable` and `disable`: switch one server, leaving every other byte of the file.

use std::process::ExitCode;

use axum::http::Method;
use clap::Args;
use serde_json::json;

use super::stored::{PATH, change, send};
use crate::commands::arguments::Target;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// Which server
    name: String,
    #[command(flatten)]
    target: Target,
}

pub(in crate::commands) async fn run(arguments: Arguments, enabled: bool) -> anyhow::Result<ExitCode> {
    let Arguments { name, target } = arguments;
    let body = json!({"server_name": name, "enabled": enabled});
    let switch = async |gateway: &_| send(gateway, Method::PATCH, PATH, &body, None).await;
    change(&target, switch, &format!("{name}: {}", if enabled { "enabled" } else { "disabled" })).await?;
    Ok(ExitCode::SUCCESS)
}
