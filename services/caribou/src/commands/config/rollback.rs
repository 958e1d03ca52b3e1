//! `caribou config rollback`: stores an earlier revision again, as the next one.

use std::process::ExitCode;

use axum::http::Method;
use clap::Args;
use serde_json::json;

use super::stored::{change, send};
use crate::commands::arguments::Target;

/// Where it is asked for.
const PATH: &str = "/api/mcp/config/rollback";

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// Which revision, as `caribou config history` shows it
    revision: i64,
    #[command(flatten)]
    target: Target,
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { revision, target } = arguments;
    let body = json!({ "revision": revision });
    let roll_back = async |gateway: &_| send(gateway, Method::POST, PATH, &body, None).await;
    change(&target, roll_back, &format!("revision {revision} is in force again")).await?;
    Ok(ExitCode::SUCCESS)
}
