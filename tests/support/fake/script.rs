//! What a fake server does: the language of its scripts.
//!
//! A script is JSON, so that the fake over stdio can read it from a file. Every member is optional. A misspelt member
//! is an error: a script that silently does nothing would let its test pass for nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Everything a fake does differently from a plain legacy server without tools.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Which eras it speaks.
    pub eras: Eras,
    /// Legacy revisions it speaks, newest first; empty = all.
    pub versions: Vec<String>,
    /// What it does when asked for another one.
    pub on_mismatch: Mismatch,
    /// Its `Tool` objects, sent as they are written here; empty = a plain one for each of `calls`.
    pub tools: Vec<Box<RawValue>>,
    /// Tools on one page of `tools/list`; 0 = all.
    pub page: usize,
    /// What it does before it reads anything (stdio).
    pub start: Vec<Step>,
    /// What it does when its input ends (stdio); then it exits with 0.
    pub eof: Vec<Step>,
    /// What it does on a method, instead of the usual.
    pub on: BTreeMap<String, Vec<Step>>,
    /// What it does when a tool is called; a listed tool without steps gives its arguments back as text.
    pub calls: BTreeMap<String, Vec<Step>>,
    /// Whether SIGTERM is ignored (stdio).
    pub ignore_sigterm: bool,
    /// How messages are written.
    pub framing: Framing,
    /// Peculiarities over HTTP.
    pub http: Http,
}

impl Script {
    /// Reads a script.
    ///
    /// # Panics
    /// It is not one.
    pub fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("bad script: {error}\n{text}"))
    }

    /// The tools it lists at first.
    pub(super) fn listed(&self) -> Vec<Box<RawValue>> {
        if !self.tools.is_empty() {
            return self.tools.clone();
        }
        let plain = |name| serde_json::value::to_raw_value(&tool(name)).expect("a tool is plain data");
        self.calls.keys().map(|name| plain(name)).collect()
    }
}

impl From<serde_json::Value> for Script {
    fn from(value: serde_json::Value) -> Self {
        Self::parse(&value.to_string())
    }
}

impl From<&str> for Script {
    fn from(text: &str) -> Self {
        Self::parse(text)
    }
}

/// A `Tool` object with a schema that takes anything.
pub fn tool(name: &str) -> serde_json::Value {
    serde_json::json!({ "name": name, "description": "a fake tool", "inputSchema": { "type": "object" } })
}

/// Eras a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Eras {
    /// Only with `initialize`.
    #[default]
    Legacy,
    /// Only without.
    Modern,
    /// As the client opens.
    Both,
}

/// What happens to an `initialize` that asks for a revision it lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mismatch {
    /// It answers with its newest, as the protocol says.
    #[default]
    Negotiate,
    /// It refuses and lists what it has: -32602, over HTTP with status 400, there also for the header.
    Refuse,
}

/// One thing a fake does. Steps of a request run in order; it is answered only by the steps that say so.
///
/// In texts these stand for: `$ID` the request's id, `$TOKEN` its progress token or null, `$N` how many calls this
/// process has had, `$SN` how many the HTTP session has had, `$PID`, `$CWD`, `$ENV` (the environment as JSON),
/// `$ARGS` and `$PARAMS` as they came, `$TASK` the task that the arguments name, `$TURN` how many calls of the tool there
/// have been about that task. Within `send` the first two stand
/// quoted, as `"$ID"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Answers as a well-behaved server would.
    Default,
    /// Answers a call with one text block.
    Text(String),
    /// Answers with this result, byte for byte.
    Result(Box<RawValue>),
    /// Answers a call with this as `structuredContent`, without any text.
    Structured(Box<RawValue>),
    /// Answers a call with an error of the tool and this text.
    Failure(String),
    /// Answers with this JSON-RPC error.
    Error(Box<RawValue>),
    /// Answers a call with a text of this many bytes.
    Blob(usize),
    /// Sends a message as it is written here.
    Send(Box<RawValue>),
    /// Sends `notifications/progress` for the request's token, if it has one.
    Progress(u32),
    /// Writes exactly this, past all framing.
    Bytes(String),
    /// Does the steps so many times; without a number, for ever.
    Repeat {
        /// How often.
        times: Option<u32>,
        /// What.
        steps: Vec<Step>,
    },
    /// Does the first list at the first call of the tool, the second one at the second, the last one ever after. What
    /// arguments name as `task_id` is counted apart.
    Turns(Vec<Vec<Step>>),
    /// Does the steps while this file exists, and the other ones while it does not.
    IfFile {
        /// Which.
        path: PathBuf,
        /// While it exists.
        #[serde(default)]
        steps: Vec<Step>,
        /// While it does not.
        #[serde(default)]
        otherwise: Vec<Step>,
    },
    /// Writes to stderr.
    Stderr(String),
    /// Waits.
    PauseMs(u64),
    /// Waits until this file exists.
    UntilFile(PathBuf),
    /// Makes this file.
    Touch(PathBuf),
    /// Lists these tools from now on.
    Tools(Vec<Box<RawValue>>),
    /// Does nothing any more, for ever.
    Hang,
    /// Exits.
    Die(i32),
    /// Kills itself with this signal.
    Kill(i32),
    /// Answers a request over HTTP with this, instead of anything of MCP.
    Status(Status),
    /// Sends an empty event with this id; the rest of the answer waits for a GET that resumes from it.
    Resumable(String),
    /// Ends the stream.
    End,
    /// Breaks the connection off.
    Reset,
}

/// How a fake writes its messages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Framing {
    /// A byte-order mark before the first message (stdio).
    pub bom: bool,
    /// CRLF instead of LF (stdio).
    pub crlf: bool,
    /// Written before and after each message (stdio), as it is.
    pub noise: String,
    /// Each answer in an array, after a notification.
    pub array: bool,
    /// Each message twice in one write (stdio).
    pub twice: bool,
    /// What becomes of the ids.
    pub ids: Ids,
    /// Bytes written at a time; 0 = all.
    pub chunk: usize,
}

/// What becomes of the ids of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ids {
    /// They are given back.
    #[default]
    Kept,
    /// They are given back as strings.
    Strings,
    /// They are all 0.
    Zero,
}

/// Peculiarities over HTTP.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// Where it answers.
    pub path: String,
    /// Whether it keeps sessions in the legacy era.
    pub sessions: bool,
    /// How it answers.
    pub answers: Answers,
    /// Whether a GET opens a standing stream.
    pub stream: bool,
    /// Whether it refuses DELETE.
    pub no_delete: bool,
    /// Path to status and `Location`.
    pub redirects: BTreeMap<String, (u16, String)>,
    /// Answers every request with this.
    pub always: Option<Status>,
    /// The `endpoint` event of HTTP+SSE at `/sse`; without one no event comes.
    pub endpoint: Option<String>,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            path: "/mcp".to_owned(),
            sessions: true,
            answers: Answers::Json,
            stream: false,
            no_delete: false,
            redirects: BTreeMap::new(),
            always: None,
            endpoint: Some("/messages?sid=1".to_owned()),
        }
    }
}

/// How a request over HTTP is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answers {
    /// With one JSON object.
    #[default]
    Json,
    /// With a stream of events.
    Sse,
}

/// A plain HTTP answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// The status.
    pub code: u16,
    /// Its headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Its body.
    #[serde(default)]
    pub body: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "bad script")]
    fn a_misspelt_member_is_refused() {
        Script::parse(r#"{"tool": []}"#);
    }

    #[test]
    fn raw_results_keep_their_bytes() {
        let script = Script::parse(r#"{"calls": {"t": [{"result": {"b": 1.0, "a": 18446744073709551617}}]}}"#);
        let Some([Step::Result(raw)]) = script.calls.get("t").map(Vec::as_slice) else { panic!("one result step") };
        assert_eq!(raw.get(), r#"{"b": 1.0, "a": 18446744073709551617}"#);
    }
}
