//! `caribou config get`: the stored servers, or one of them, secrets masked.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::stored::Stored;
use crate::commands::arguments::Target;
use crate::commands::gateway::Gateway;
use crate::commands::output;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// Only this server, with all its fields
    name: Option<String>,
    #[command(flatten)]
    target: Target,
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let stored = Gateway::once(&arguments.target, Stored::read).await?;
    match &arguments.name {
        Some(name) => output::line(format_args!("{:#}", Value::Object(stored.server(name)?.clone())))?,
        None if arguments.target.json => output::line(String::from_utf8_lossy(&stored.text))?,
        None => output::table(
            ["Server", "Enabled", "Type", "Runs or asks"],
            &stored.servers.iter().map(|(name, server)| row(name, server)).collect::<Vec<_>>(),
        )?,
    }
    Ok(ExitCode::SUCCESS)
}

fn row(name: &str, server: &Value) -> [String; 4] {
    let text = |key: &str| server[key].as_str().unwrap_or_default().to_owned();
    let enabled = if server["enabled"] == Value::Bool(false) { "no" } else { "yes" };
    let arguments = server["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let command: Vec<String> = std::iter::once(text("command")).chain(arguments.map(str::to_owned)).collect();
    let runs = if server["url"].is_string() { text("url") } else { command.join(" ") };
    [name.to_owned(), enabled.to_owned(), text("type"), runs]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_says_what_a_server_runs_or_asks() {
        let stdio =
            json!({"enabled": true, "type": "stdio", "command": "uvx", "args": ["mcp-server-time"], "url": null});
        assert_eq!(row("time", &stdio), ["time", "yes", "stdio", "uvx mcp-server-time"]);
        let http = json!({"enabled": false, "type": "http", "command": null, "args": [], "url": "http://h/mcp"});
        assert_eq!(row("far", &http), ["far", "no", "http", "http://h/mcp"]);
    }
}
