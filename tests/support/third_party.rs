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
use crate::{Home, eventually, network};

/// How long a server may take to listen on a loaded machine.
const START: Duration = Duration::from_secs(30);

/// `@modelcontextprotocol/server-everything` over stdio.
pub fn everything() -> Value {
    json!({ "command": "node", "args": [node_package("server-everything"), "stdio"] })
}

/// `@modelcontextprotocol/server-memory` over stdio, with its graph in `file`.
pub fn memory(file: &Path) -> Value {
    json!({ "command": "node", "args": [node_package("server-memory")], "env": { "MEMORY_FILE_PATH": file } })
}

/// `@modelcontextprotocol/server-memory` over stdio, as README configures it: by its name, which npx finds here.
pub fn memory_by_name() -> Value {
    let package = node_package("server-memory");
    let folder = package.ancestors().nth(5).expect("a package lies among others");
    let args = ["-y", "--offline", "@modelcontextprotocol/server-memory"];
    json!({ "command": "npx", "args": args, "cwd": folder })
}

/// `mcp-server-time` over stdio.
pub fn time() -> Value {
    json!({ "command": installed("venv/bin/mcp-server-time"), "args": ["--local-timezone", "UTC"] })
}

/// A server of FastMCP with its tasks of the modern era, over stdio: `add`, `tear` (fails), `ask` (a question), `brood`
/// (never ends).
pub fn fastmcp_tasks() -> Value {
    json!({ "command": fastmcp_python(), "args": ["-c", FASTMCP_TASKS] })
}

/// The server of [`fastmcp_tasks`] or, with a port as its argument, the same over streamable HTTP.
const FASTMCP_TASKS: &str = r#"
import asyncio, sys
import mcp_types
from fastmcp import Context, FastMCP
from fastmcp_tasks import TasksExtension

mcp = FastMCP("tasks")
mcp.add_extension(TasksExtension())

@mcp.tool(task=True)
async def add(a: int, b: int) -> int:
    return a + b

@mcp.tool(task=True)
async def tear() -> str:
    raise ValueError("the paper tore")

@mcp.tool(task=True)
async def brood() -> str:
    await asyncio.Event().wait()

@mcp.tool(task=True)
async def ask(ctx: Context) -> str | mcp_types.InputRequiredResult:
    given = ctx.input_responses or {}
    if "colour" in given:
        return f"painted it {given['colour'].content['name']}"
    form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    params = mcp_types.ElicitRequestFormParams(message="Which colour?", requested_schema=form)
    return mcp_types.InputRequiredResult(input_requests={"colour": mcp_types.ElicitRequest(params=params)})

over = {"transport": "http", "host": "127.0.0.1", "port": int(sys.argv[1])} if len(sys.argv) > 1 else {}
mcp.run(show_banner=False, **over)
"#;

fn fastmcp_python() -> PathBuf {
    installed("venv-tasks/bin/python")
}

/// A server over streamable HTTP that runs until it is dropped.
#[derive(Debug)]
pub struct RemoteServer {
    port: u16,
    _process: Child,
}

/// `@modelcontextprotocol/server-everything` over streamable HTTP.
pub struct EverythingHttp;

impl EverythingHttp {
    /// Starts it and waits until it listens.
    pub async fn start() -> RemoteServer {
        let port = network::free_port();
        let mut node = Command::new("node");
        node.arg(node_package("server-everything")).arg("streamableHttp").env("PORT", port.to_string());
        RemoteServer::start(node, port).await
    }
}

/// The server of [`fastmcp_tasks`] over streamable HTTP.
pub struct FastMcpTasksHttp;

impl FastMcpTasksHttp {
    /// Starts it and waits until it listens.
    pub async fn start() -> RemoteServer {
        let port = network::free_port();
        let mut python = Command::new(fastmcp_python());
        python.args(["-c", FASTMCP_TASKS, &port.to_string()]);
        RemoteServer::start(python, port).await
    }
}

impl RemoteServer {
    async fn start(mut command: Command, port: u16) -> Self {
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("its program can be run");
        eventually(START, "the server listens", async || {
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

/// The interpreter beside which gRPC and its compiler are installed.
pub fn python_grpc() -> Command {
    Command::new(installed("venv-grpc/bin/python"))
}

/// A command for the Python that holds the official Python SDK.
pub fn python_sdk() -> Command {
    Command::new(installed("venv/bin/python"))
}

/// The folder of the official TypeScript SDK's modules.
pub fn typescript_sdk() -> PathBuf {
    let module = installed("node_modules/@modelcontextprotocol/sdk/dist/esm/client/index.js");
    module.ancestors().nth(2).expect("a module lies in a folder").to_owned()
}

/// The module of the official TypeScript SDK, version 2.
pub fn second_typescript_sdk() -> PathBuf {
    installed("clients/node_modules/@modelcontextprotocol/client/dist/index.mjs")
}

/// The command line of the MCP Inspector, with the Node.js that it needs; it keeps what it remembers in `home`.
pub fn inspector(home: &Home) -> Command {
    let mut command = Command::new(installed("conformance/node_modules/.bin/node"));
    command.arg(installed("clients/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"));
    command.arg("--cli").env("HOME", home.path());
    command
}

/// A command for the Python that holds the MCP adapters of LangChain.
pub fn langchain() -> Command {
    Command::new(installed("venv-langchain/bin/python"))
}

/// The official conformance suite, in the Node.js that it needs.
pub fn conformance() -> Command {
    let mut command = Command::new(installed("conformance/node_modules/.bin/node"));
    command.arg(installed("conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js"));
    command
}

/// A script of ours that looks at pages of `url` in a headless Chromium, with the Node.js that it needs; pictures go to
/// `shots`.
pub fn browser(script: &Path, url: &str, shots: &Path) -> Command {
    let chromium = installed("console/unpacked/chromium");
    let folder = chromium.parent().expect("a file lies in a folder");
    let modules = installed("console/node_modules/axe-core/axe.min.js");
    let mut command = Command::new(installed("conformance/node_modules/.bin/node"));
    command.arg(script).kill_on_drop(true).stdin(Stdio::null());
    command.env("CONSOLE_URL", url).env("CONSOLE_SHOTS", shots);
    command.env("CONSOLE_MODULES", modules.ancestors().nth(2).expect("a package lies in a folder"));
    // Where the browser is found unpacked, and keeps what it forgets afterwards.
    command.env("TMPDIR", folder);
    command
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
