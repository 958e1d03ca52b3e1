//! The ways to call the echo, and callers over HTTP.
//!
//! Owns the requests and the check of their answers. A caller sends the same bytes again and again, prepared once. An
//! answer other than the expected one is a failed call; a broken connection ends the run. Keeps no invariant.

use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context, ensure};
use caribou_core::era::{Era, LATEST_LEGACY_VERSION, MODERN_VERSION};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

use crate::http1::{self, Connection};
use crate::sample::Samples;

const MESSAGE: &str = "hello from the load generator";

/// What the body of every good answer holds, whoever passed it on.
const ECHOED: &str = r#""text":"hello from the load generator""#;

/// The user that all calls are for.
pub(crate) const USER: &str = "load";

/// The name of the secret that a call brings for a header.
pub(crate) const CONTEXT_KEY: &str = "TOKEN";

/// Where Caribou lists its tools.
pub(crate) const LIST: &str = "/api/mcp/tools";

/// One way to call the echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Path {
    /// Straight to the HTTP echo.
    DirectHttp,
    /// Through Caribou's REST to the HTTP echo.
    CaribouHttp,
    /// The same, through a Caribou that has no configuration file to look at any more.
    CaribouNoFile,
    /// Through a Caribou that asks nobody who it is, records nothing and adds no header.
    CaribouBare,
    /// Through a Caribou that does all three, with a key.
    CaribouGuarded,
    /// Straight to the stdio echo, all calls in flight on one pipe.
    DirectStdio,
    /// Through Caribou's REST to the stdio echo.
    CaribouStdio,
    /// Through Caribou's MCP endpoint to the HTTP echo, by clients of the legacy era with a session each.
    CaribouMcp,
    /// The same by clients of the modern era.
    CaribouMcpModern,
    /// No call: the list of many tools of many servers, which Caribou has.
    CaribouList,
}

impl Path {
    /// Each direct way before the ways through Caribou.
    pub(crate) const ALL: [Self; 10] = [
        Self::DirectHttp,
        Self::CaribouHttp,
        Self::CaribouNoFile,
        Self::CaribouBare,
        Self::CaribouGuarded,
        Self::DirectStdio,
        Self::CaribouStdio,
        Self::CaribouMcp,
        Self::CaribouMcpModern,
        Self::CaribouList,
    ];
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::DirectHttp => "direct-http",
            Self::CaribouHttp => "caribou-http",
            Self::CaribouNoFile => "caribou-no-file",
            Self::CaribouBare => "caribou-bare",
            Self::CaribouGuarded => "caribou-guarded",
            Self::DirectStdio => "direct-stdio",
            Self::CaribouStdio => "caribou-stdio",
            Self::CaribouMcp => "caribou-mcp",
            Self::CaribouMcpModern => "caribou-mcp-mod",
            Self::CaribouList => "caribou-list",
        })
    }
}

/// Calls over a connection of its own, one after the other.
pub(crate) struct HttpCaller {
    connection: Connection,
    request: Vec<u8>,
    expected: Expected,
}

/// What the body of a good answer holds.
enum Expected {
    /// The message that was sent.
    Echo,
    /// As many bytes as the first list, whose tools were counted.
    Bytes(usize),
}

impl Expected {
    fn is_met_by(&self, body: &str) -> bool {
        match self {
            Self::Echo => is_echo(body),
            Self::Bytes(length) => body.len() == *length,
        }
    }
}

impl HttpCaller {
    /// A caller of the HTTP echo itself, with a session of its own where the era has sessions.
    ///
    /// # Errors
    /// The echo cannot be reached or does not open a session.
    pub(crate) fn direct(echo: SocketAddr, era: Era) -> anyhow::Result<Self> {
        Self::of_server(echo, era, ("echo", None))
    }

    /// A caller of `tool` through Caribou's MCP endpoint, for one thread, with a session of its own where the era has
    /// sessions.
    ///
    /// # Errors
    /// Caribou cannot be reached or does not open a session.
    pub(crate) fn over_mcp(caribou: SocketAddr, era: Era, tool: &str, thread: &str) -> anyhow::Result<Self> {
        Self::of_server(caribou, era, (tool, Some(thread)))
    }

    fn of_server(server: SocketAddr, era: Era, (tool, thread): (&str, Option<&str>)) -> anyhow::Result<Self> {
        let mut connection = Connection::open(server)?;
        let body = tools_call(era, tool, 1);
        let mut headers: Vec<(&str, &str)> = thread.into_iter().map(|thread| ("x-caribou-thread", thread)).collect();
        let session = match era {
            Era::Modern => {
                headers.extend([("mcp-protocol-version", MODERN_VERSION), ("mcp-method", "tools/call")]);
                headers.push(("mcp-name", tool));
                None
            }
            Era::Legacy => Some(opened(&mut connection, server)?),
        };
        if let Some(session) = &session {
            headers.extend([("mcp-session-id", session.as_str()), ("mcp-protocol-version", LATEST_LEGACY_VERSION)]);
        }
        let request = post(server, &headers, &body);
        Ok(Self { connection, request, expected: Expected::Echo })
    }

    /// A caller of `tool` through Caribou, for one thread.
    ///
    /// # Errors
    /// Caribou cannot be reached.
    pub(crate) fn through(caribou: SocketAddr, tool: &str, thread: &str) -> anyhow::Result<Self> {
        Self::asking(caribou, &[], &call_body(tool, thread))
    }

    /// The same with a credential of the caller's, and a secret that Caribou makes a header of.
    ///
    /// # Errors
    /// Caribou cannot be reached.
    pub(crate) fn identified(caribou: SocketAddr, tool: &str, thread: &str, bearer: &str) -> anyhow::Result<Self> {
        let mut body = call_body(tool, thread);
        body["config"] = json!({ "context": { "secrets": { CONTEXT_KEY: "a secret of one request" } } });
        Self::asking(caribou, &[("authorization", bearer)], &body)
    }

    fn asking(caribou: SocketAddr, headers: &[(&str, &str)], body: &Value) -> anyhow::Result<Self> {
        let request = http1::post(caribou, "/api/mcp/tools/call", headers, &body.to_string());
        Ok(Self { connection: Connection::open(caribou)?, request, expected: Expected::Echo })
    }

    /// Asks Caribou for its list, which has `tools` tools, again and again.
    ///
    /// # Errors
    /// Caribou cannot be reached, or its list is another one.
    pub(crate) fn listing(caribou: SocketAddr, tools: usize) -> anyhow::Result<Self> {
        let mut connection = Connection::open(caribou)?;
        let request = http1::get(caribou, LIST, &[]);
        let answer = connection.exchange(&request)?;
        let listed = answer.body.matches(r#""raw_name":"#).count();
        ensure!(listed == tools, "Caribou lists {listed} tools instead of {tools}");
        let expected = Expected::Bytes(answer.body.len());
        Ok(Self { connection, request, expected })
    }

    /// Calls once; the inner error is an answer that is not the one expected.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) fn call(&mut self) -> anyhow::Result<Result<(), String>> {
        let answer = self.connection.exchange(&self.request)?;
        let good = answer.status == 200 && self.expected.is_met_by(answer.body);
        Ok(if good { Ok(()) } else { Err(format!("{} {}", answer.status, answer.body)) })
    }

    /// Calls until `end`; the last call may end after it.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) fn run(&mut self, end: Instant) -> anyhow::Result<Samples> {
        let mut samples = Samples::default();
        let mut start = Instant::now();
        while start < end {
            let outcome = self.call()?;
            let now = Instant::now();
            match outcome {
                Ok(()) => samples.answered(now - start),
                Err(answer) => samples.failed(|| answer),
            }
            start = now;
        }
        Ok(samples)
    }
}

/// Opens a legacy session; its id.
///
/// # Errors
/// The server does not open one.
pub(crate) fn opened(connection: &mut Connection, server: SocketAddr) -> anyhow::Result<String> {
    let answer = connection.exchange(&post(server, &[], &initialize()))?;
    let session = answer.header("mcp-session-id").context("the server minted no session")?.to_owned();
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", LATEST_LEGACY_VERSION)];
    let status = connection.exchange(&post(server, &headers, INITIALIZED))?.status;
    ensure!(status == 202, "the server answered {status} to initialized");
    Ok(session)
}

fn call_body(tool: &str, thread: &str) -> Value {
    json!({ "name": tool, "arguments": { "message": MESSAGE }, "user_id": USER, "thread_id": thread })
}

/// Whether an answer holds the message that was sent.
pub(crate) fn is_echo(body: &str) -> bool {
    body.contains(ECHOED)
}

/// The JSON-RPC request of one call.
pub(crate) fn tools_call(era: Era, tool: &str, id: usize) -> String {
    let arguments = json!({ "message": MESSAGE });
    let mut params = json!({ "name": tool, "arguments": arguments });
    if era == Era::Modern {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

/// The JSON-RPC request that opens a legacy session.
pub(crate) fn initialize() -> String {
    let client = json!({ "name": "load", "version": "1" });
    let params = json!({ "protocolVersion": LATEST_LEGACY_VERSION, "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string()
}

/// The notification that follows it.
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn post(echo: SocketAddr, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut all = vec![("accept", "application/json, text/event-stream")];
    all.extend(headers);
    http1::post(echo, "/mcp", &all, body)
}
