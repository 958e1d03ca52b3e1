//! MCP servers that others publish, as entries of `mcpServers`.
//!
//! `tests/run` installs them, in the versions it pins, under `target/third-party`. A test that needs one fails when it
//! is missing: a suite that skips what it cannot find proves nothing.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::servers::target_folder;
use crate::{eventually, network};

/// How long a Node server may take to listen on a loaded machine.
const START: Duration = Duration::from_secs(30);

/// `@modelcontextprotocol/server-everything` over stdio.
pub fn everything() -> Value {
    json!({ "command": "node", "args": [node_package("server-everything"), "stdio"] })
}

/// `@modelcontextprotocol/server-memory` over stdio, with its graph in `file`.
pub fn memory(file: &Path) -> Value {
    json!({ "command": "node", "args": [node_package("server-memory")], "env": { "MEMORY_FILE_PATH": file } })
}

/// `mcp-server-time` over stdio.
pub fn time() -> Value {
    json!({ "command": installed("venv/bin/mcp-server-time"), "args": ["--local-timezone", "UTC"] })
}

/// `@modelcontextprotocol/server-everything` over streamable HTTP.
#[derive(Debug)]
pub struct EverythingHttp {
    port: u16,
    _process: Child,
}

impl EverythingHttp {
    /// Starts it and waits until it listens.
    pub async fn start() -> Self {
        let port = network::free_port();
        let process = Command::new("node")
            .arg(node_package("server-everything"))
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("node can be run");
        eventually(START, "server-everything listens", async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()
        })
        .await;
        Self { port, _process: process }
    }

    /// Its entry of `mcpServers`.
    pub fn entry(&self) -> Value {
        json!({ "type": "http", "url": format!("http://127.0.0.1:{}/mcp", self.port) })
    }
}

/// The package `npm` in one of the two releases that `tests/run` installs: `contract`, which the tables of the launch
/// policy describe, and `machine`, that of this machine.
pub fn npm(release: &str) -> PathBuf {
    let manifest = installed(&format!("npm/{release}/node_modules/npm/package.json"));
    manifest.parent().expect("a file lies in a folder").to_owned()
}

fn node_package(name: &str) -> PathBuf {
    installed(&format!("node_modules/@modelcontextprotocol/{name}/dist/index.js"))
}

fn installed(path: &str) -> PathBuf {
    let path = target_folder().join("third-party").join(path);
    assert!(path.is_file(), "{} is missing; run tests/run, which installs it", path.display());
    path
}
