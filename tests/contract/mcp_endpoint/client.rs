//! Clients of both eras, as plain as they can be: they send what they are told and keep what came.

use std::time::Duration;

use caribou_tests::{Answer, Caribou, eventually};
use serde_json::{Value, json};

pub(super) const MODERN: &str = "2026-07-28";

/// How long a message may take to come on a loaded machine.
pub(super) const SOON: Duration = Duration::from_secs(20);

/// A legacy client's session.
pub(super) struct Session<'c> {
    pub(super) caribou: &'c Caribou,
    pub(super) path: String,
    pub(super) id: String,
    /// What it got from `initialize`.
    pub(super) greeting: Value,
    pub(super) key: Option<String>,
}

/// The body of a request.
pub(super) fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// A POST as clients send it.
pub(super) fn post(caribou: &Caribou, path: &str, body: String) -> reqwest::RequestBuilder {
    let request = caribou.request("POST", path).header("content-type", "application/json");
    request.header("accept", "application/json, text/event-stream").body(body)
}

/// The messages of a body, whether it is JSON or a whole event stream.
pub(super) fn messages(answer: &Answer) -> Vec<Value> {
    if answer.content_type != "text/event-stream" {
        return vec![answer.json()];
    }
    let data = answer.body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|line| serde_json::from_str(line).unwrap()).collect()
}

impl<'c> Session<'c> {
    /// The same session at another replica.
    pub(super) fn at<'o>(&self, caribou: &'o Caribou) -> Session<'o> {
        let Self { path, id, greeting, key, .. } = self;
        Session { caribou, path: path.clone(), id: id.clone(), greeting: greeting.clone(), key: key.clone() }
    }

    pub(super) async fn open(caribou: &'c Caribou, path: &str) -> Self {
        Self::open_with(caribou, path, None).await
    }

    pub(super) async fn open_with(caribou: &'c Caribou, path: &str, key: Option<&str>) -> Self {
        Self::open_as(caribou, path, key, json!({ "elicitation": {} })).await
    }

    /// The session of a client with these capabilities.
    pub(super) async fn open_as(caribou: &'c Caribou, path: &str, key: Option<&str>, capabilities: Value) -> Self {
        let info = json!({ "name": "t", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info });
        let mut request = post(caribou, path, request(0, "initialize", &params));
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let response = request.send().await.unwrap();
        let id = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
        let answer = Answer::read(response).await;
        let id = id.unwrap_or_else(|| panic!("no session: {answer:?}"));
        let greeting = answer.json()["result"].clone();
        let session = Self { caribou, path: path.to_owned(), id, greeting, key: key.map(str::to_owned) };
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(session.send(initialized.to_string()).await.status, 202);
        session
    }

    /// A request of this session to send or to change.
    pub(super) fn with(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        let request = request.header("mcp-session-id", &self.id).header("mcp-protocol-version", "2025-11-25");
        match &self.key {
            Some(key) => request.header("authorization", format!("Bearer {key}")),
            None => request,
        }
    }

    pub(super) async fn send(&self, body: String) -> Answer {
        self.caribou.send(self.with(post(self.caribou, &self.path, body))).await
    }

    pub(super) async fn ask(&self, method: &str, params: Value) -> Answer {
        self.send(request(7, method, &params)).await
    }

    pub(super) async fn call(&self, name: &str, arguments: Value) -> Answer {
        self.ask("tools/call", json!({ "name": name, "arguments": arguments })).await
    }

    pub(super) async fn end(&self) -> Answer {
        self.caribou.send(self.with(self.caribou.request("DELETE", &self.path))).await
    }

    /// The standing stream, which is open when this returns.
    pub(super) async fn listen(&self) -> Stream {
        let request = self.caribou.request("GET", &self.path).header("accept", "text/event-stream");
        Stream::of(self.with(request)).await
    }
}

/// A modern request of `method` about `name`.
pub(super) fn modern(caribou: &Caribou, path: &str, method: &str, params: Value) -> reqwest::RequestBuilder {
    let mut params = params;
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
    let capabilities = &mut params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    if capabilities.is_null() {
        *capabilities = json!({});
    }
    let named =
        params.get("name").or(params.get("uri")).or(params.get("taskId")).and_then(Value::as_str).map(str::to_owned);
    let request = post(caribou, path, request(7, method, &params));
    let request = request.header("mcp-protocol-version", MODERN).header("mcp-method", method);
    match named {
        Some(name) => request.header("mcp-name", name),
        None => request,
    }
}

/// An event stream that is being read.
pub(super) struct Stream {
    read: String,
    pub(super) response: Option<reqwest::Response>,
}

impl Stream {
    pub(super) async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        let mut stream = Self { read: String::new(), response: Some(response) };
        stream.more().await;
        stream
    }

    async fn more(&mut self) -> bool {
        let Some(response) = &mut self.response else { return false };
        let chunk = tokio::time::timeout(SOON, response.chunk()).await.expect("something comes in time");
        match chunk.ok().flatten() {
            Some(chunk) => {
                self.read.push_str(std::str::from_utf8(&chunk).unwrap());
                true
            }
            None => {
                self.response = None;
                false
            }
        }
    }

    /// The next message; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Value> {
        let (_, data) = self.event().await?;
        Some(serde_json::from_str(&data).unwrap())
    }

    /// The name and the data of the next event that has any; `None` at the end.
    pub(super) async fn event(&mut self) -> Option<(String, String)> {
        loop {
            if let Some(end) = self.read.find("\n\n") {
                let event: String = self.read.drain(..end + 2).collect();
                let name = event.lines().find_map(|line| line.strip_prefix("event: ")).unwrap_or_default();
                let data: Vec<_> = event.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
                if !data.is_empty() {
                    return Some((name.to_owned(), data.join("\n")));
                }
            } else if !self.more().await {
                return None;
            }
        }
    }
}

/// Waits until this file is there.
pub(super) async fn appears(path: &std::path::Path) {
    eventually(SOON, "the file appears", async || path.exists().then_some(())).await;
}
