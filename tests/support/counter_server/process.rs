//! The process of a counter: one thread that reads, one for each call that takes its time, one that beats.

use std::collections::BTreeMap;
use std::io::{BufRead, Write, stdin, stdout};
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::bearing::{Bearing, become_daemon_if_told};
use super::diary::{Diary, boot_clock_ns};

/// Names a life to what it starts.
pub(super) const LIFE: &str = "COUNTER_LIFE";

/// How often a life is noted, in milliseconds, if not every 20.
const BEAT: &str = "COUNTER_BEAT_MS";

/// What a server of this revision says of itself.
const VERSION: &str = "2025-11-25";

/// The status that `die` ends with.
const DIED: i32 = 7;

/// Serves until stdin ends. The whole of the binary `counter-mcp`.
///
/// # Panics
/// It was not told where its diary is.
pub fn serve() -> ExitCode {
    become_daemon_if_told();
    let diary = Diary::of_this_process();
    let life = format!("{}-{}", std::process::id(), boot_clock_ns());
    let counter = Arc::new(Counter { life, diary, count: Mutex::default(), asked: Mutex::default() });
    let (_held, met) = counter.diary.hold_session();
    counter.note("start", &json!({ "met": met }));
    let beating = Arc::clone(&counter);
    std::thread::spawn(move || beat(&beating.diary, &beating.life, || true));
    Bearing::of_this_process().begin(&counter.life);
    for line in stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<BTreeMap<String, Value>>(&line) else { continue };
        counter.hear(&message);
    }
    counter.note("end", &json!({}));
    if Bearing::of_this_process().is_stubborn {
        loop {
            std::thread::park();
        }
    }
    ExitCode::SUCCESS
}

/// Notes that this life lasts, again and again while it may.
pub(super) fn beat(diary: &Diary, life: &str, may: impl Fn() -> bool) {
    let period = std::env::var(BEAT).ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let stamp = diary.stamp(life);
    while may() {
        stamp.set(boot_clock_ns());
        pause(Duration::from_millis(period));
    }
}

/// Waits; no condition is waited for but that time passes.
pub(super) fn pause(time: Duration) {
    let (_kept, never) = channel::<()>();
    let _ = never.recv_timeout(time);
}

struct Counter {
    life: String,
    diary: Diary,
    count: Mutex<u64>,
    /// The calls whose callers were asked, by the name of the question.
    asked: Mutex<BTreeMap<String, Asked>>,
}

/// A call that counts once its caller says so.
struct Asked {
    id: Value,
    arguments: Value,
}

impl Counter {
    fn note(&self, event: &str, members: &Value) {
        self.diary.write(event, &self.life, members);
    }

    fn hear(self: &Arc<Self>, message: &BTreeMap<String, Value>) {
        let null = Value::Null;
        let params = message.get("params").unwrap_or(&null);
        let (Some(method), Some(id)) = (message.get("method").and_then(Value::as_str), message.get("id")) else {
            if let Some(question) = message.get("id") {
                self.hear_answer(question, message.get("result").unwrap_or(&null));
            } else if message.get("method").is_some_and(|method| method == "notifications/cancelled") {
                self.asked().retain(|_, asked| asked.id != params["requestId"]);
            }
            return;
        };
        match method {
            "initialize" => answer(
                id,
                &json!({
                    "protocolVersion": VERSION, "capabilities": { "tools": {} },
                    "serverInfo": { "name": "counter", "version": "0" },
                }),
            ),
            "ping" => answer(id, &json!({})),
            "tools/list" => answer(
                id,
                &json!({ "tools": [
                { "name": "count", "inputSchema": { "type": "object" } },
                { "name": "ask", "inputSchema": { "type": "object" } },
                { "name": "die", "inputSchema": { "type": "object" } },
            ] }),
            ),
            "tools/call" if params["name"] == "count" => self.count(id.clone(), &params["arguments"]),
            "tools/call" if params["name"] == "ask" => self.ask(id.clone(), params["arguments"].clone()),
            "tools/call" if params["name"] == "die" => std::process::exit(DIED),
            _ => {
                say(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "method not found" } }))
            }
        }
    }

    /// Counts once, at once or after the time that is asked for.
    fn count(self: &Arc<Self>, id: Value, arguments: &Value) {
        self.note("call", &json!({ "call": arguments["call_id"].as_str().unwrap_or_default() }));
        self.finish(id, arguments);
    }

    /// Asks the caller of a call whether to count.
    fn ask(self: &Arc<Self>, id: Value, arguments: Value) {
        self.note("call", &json!({ "call": arguments["call_id"].as_str().unwrap_or_default() }));
        let question = format!("may-{id}");
        self.asked().insert(question.clone(), Asked { id, arguments });
        let schema = json!({ "type": "object", "properties": { "sure": { "type": "boolean" } } });
        let params = json!({ "message": "Count?", "requestedSchema": schema });
        say(&json!({ "jsonrpc": "2.0", "id": question, "method": "elicitation/create", "params": params }));
    }

    fn hear_answer(self: &Arc<Self>, question: &Value, result: &Value) {
        let asked = question.as_str().and_then(|question| self.asked().remove(question));
        let Some(Asked { id, arguments }) = asked else { return };
        if result["action"] != "accept" {
            let text = json!({ "type": "text", "text": format!("not counted: {}", result["action"]) });
            return answer(&id, &json!({ "content": [text] }));
        }
        if let Some(path) = arguments["touch"].as_str() {
            let _ = std::fs::write(path, "");
        }
        self.finish(id, &arguments);
    }

    fn asked(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts once and answers.
    fn finish(self: &Arc<Self>, id: Value, arguments: &Value) {
        let call = arguments["call_id"].as_str().unwrap_or_default().to_owned();
        let own = Arc::clone(self);
        let finish = move || {
            let mut count = own.count.lock().unwrap_or_else(PoisonError::into_inner);
            *count += 1;
            let told = json!({ "count": *count, "pid": std::process::id(), "life": own.life, "call": call });
            own.note("done", &json!({ "call": call, "count": *count }));
            answer(&id, &json!({ "content": [], "structuredContent": told }));
        };
        match arguments["ms"].as_u64() {
            None | Some(0) => finish(),
            Some(ms) => drop(std::thread::spawn(move || {
                pause(Duration::from_millis(ms));
                finish();
            })),
        }
    }
}

fn answer(id: &Value, result: &Value) {
    say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

fn say(message: &Value) {
    // Whoever does not read any more has closed the session.
    let _ = stdout().lock().write_all(format!("{message}\n").as_bytes());
}
