//! `caribou config set`: changes fields of one server and leaves the others.

use std::process::ExitCode;

use axum::body::Bytes;
use axum::http::Method;
use clap::Args;
use serde_json::{Map, Value, json};

use super::fields;
use super::stored::{PATH, Stored, change, send};
use crate::commands::arguments::Target;
use crate::commands::gateway::Gateway;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// Which server
    name: String,
    /// Fields, such as routing.priority=50 or 'env.TOKEN=$TOKEN'
    #[arg(value_name = "KEY=VALUE", required = true)]
    fields: Vec<String>,
    #[command(flatten)]
    target: Target,
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { name, fields, target } = arguments;
    change(&target, async |gateway| set(gateway, &name, &fields).await, &format!("{name}: changed")).await?;
    Ok(ExitCode::SUCCESS)
}

async fn set(gateway: &Gateway, name: &str, fields: &[String]) -> anyhow::Result<Bytes> {
    let stored = Stored::read(gateway).await?;
    let mut server = stored.server(name)?.clone();
    fields::lay(&mut server, fields)?;
    let (path, body) = request(&stored.servers, name, server);
    send(gateway, Method::PUT, path, &body, stored.tag.as_deref()).await
}

/// One server is replaced alone, so that a wrong neighbour blocks nothing. One with OAuth is written with all others:
/// its secrets are shown as null, which only a whole write keeps.
fn request(servers: &Map<String, Value>, name: &str, server: Map<String, Value>) -> (&'static str, Value) {
    if server.get("oauth").is_none_or(Value::is_null) {
        return ("/api/mcp/config/server", json!({"server_name": name, "server": server}));
    }
    let mut servers = servers.clone();
    servers.insert(name.to_owned(), Value::Object(server));
    (PATH, json!({"mcp_servers": servers}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_with_oauth_is_written_with_its_neighbours_and_any_other_alone() {
        let Value::Object(servers) = json!({"a": {"oauth": null}, "b": {"oauth": {"client_secret": null}}}) else {
            panic!("an object")
        };
        let alone = |name: &str| request(&servers, name, servers[name].as_object().unwrap().clone());
        assert_eq!(alone("a"), ("/api/mcp/config/server", json!({"server_name": "a", "server": {"oauth": null}})));
        assert_eq!(alone("b"), (PATH, json!({"mcp_servers": servers})));
    }
}
