//! The fake itself: takes a message, does what the script says, on whatever transport.

use std::collections::HashMap;
use std::process::exit;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::outlet::{Out, Outlet};
use super::replies::{self, Incoming};
use super::script::{Script, Step};
use super::seen::{Log, Seen};
use crate::process;

/// How often a step looks for a file.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A fake with its script and its memory.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) script: Script,
    pub(super) log: Log,
    tools: Mutex<Vec<Box<RawValue>>>,
    calls: AtomicU32,
    in_flight: Mutex<HashMap<String, Arc<Notify>>>,
    /// How often each tool was called, for each task that arguments name.
    turns: Mutex<HashMap<(String, String), usize>>,
    /// How many calls of each tool are under way.
    under_way: Mutex<HashMap<String, u32>>,
}

/// What a request is about, besides its message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context {
    /// How many calls its HTTP session has had, this one counted.
    pub(super) session_calls: u32,
    /// Whether the end of its response stream cancels it.
    pub(super) ends_with_stream: bool,
    /// How many calls of its tool about its task came before it.
    pub(super) turn: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    pub(super) fn new(script: Script, log: Log) -> Arc<Self> {
        let tools = Mutex::new(script.listed());
        let (in_flight, turns, under_way) = (Mutex::default(), Mutex::default(), Mutex::default());
        Arc::new(Self { script, log, tools, calls: AtomicU32::new(0), in_flight, turns, under_way })
    }

    /// Accepts one message. What it asks for is done by the future; that it can be cancelled holds from now on, so the
    /// future may be spawned without losing a cancel that comes right after.
    pub(super) fn accept(
        self: &Arc<Self>,
        incoming: Incoming,
        outlet: Outlet,
        context: Context,
    ) -> BoxFuture<'static, ()> {
        if incoming.method.as_deref() == Some("tools/call") {
            lock(&self.in_flight).insert(incoming.id().to_owned(), Arc::default());
        }
        let server = Arc::clone(self);
        async move { server.take(&incoming, &outlet, context).await }.boxed()
    }

    /// Does everything one message asks for; resolves when its answer is given out.
    async fn take(&self, incoming: &Incoming, outlet: &Outlet, context: Context) {
        let Some(method) = incoming.method.as_deref() else { return };
        if method == "notifications/cancelled" {
            let id = incoming.params()["requestId"].to_string();
            if let Some(call) = lock(&self.in_flight).get(&id) {
                call.notify_one();
            }
            return;
        }
        if let Some(steps) = self.script.on.get(method) {
            return self.run(steps, incoming, outlet, context).await;
        }
        if let Some((_, error)) = replies::refusal(&self.script, incoming) {
            return outlet.put(Out::Message(incoming.error(&error))).await;
        }
        if method == "tools/call" {
            return self.call(incoming, outlet, context).await;
        }
        self.usual(incoming, outlet).await;
    }

    async fn usual(&self, incoming: &Incoming, outlet: &Outlet) {
        if incoming.method.as_deref() == Some("tools/call") {
            let echo = self.out(&Step::Text("$ARGS".to_owned()), incoming, Context::default());
            return outlet.put(echo.expect("a text is given out")).await;
        }
        let tools = lock(&self.tools).clone();
        if let Some(answer) = replies::usual(&self.script, &tools, incoming) {
            outlet.put(Out::Message(answer)).await;
        }
    }

    async fn call(&self, incoming: &Incoming, outlet: &Outlet, context: Context) {
        let name = incoming.params()["name"].as_str().unwrap_or_default().to_owned();
        self.calls.fetch_add(1, Ordering::Relaxed);
        let cancelled = lock(&self.in_flight).get(incoming.id()).cloned().unwrap_or_default();
        let context = Context { turn: self.take_turn(&name, incoming), ..context };
        let steps = self.script.calls.get(&name).map_or([Step::Default].as_slice(), Vec::as_slice);
        tokio::select! {
            () = self.run(steps, incoming, outlet, context) => self.log.add("finished", incoming.id()),
            () = cancelled.notified() => self.log.add("cancelled", incoming.id()),
            () = outlet.gone(), if context.ends_with_stream => self.log.add("gone", incoming.id()),
        }
        lock(&self.in_flight).remove(incoming.id());
        lock(&self.under_way).entry(name).and_modify(|count| *count -= 1);
    }

    /// Counts a call that begins; how many there were of its tool about its task.
    fn take_turn(&self, name: &str, incoming: &Incoming) -> usize {
        let overlap = {
            let mut under_way = lock(&self.under_way);
            let count = under_way.entry(name.to_owned()).or_default();
            *count += 1;
            *count
        };
        let (event, raw) = ("called".to_owned(), name.to_owned());
        self.log.add_full(Seen { event, raw, overlap, ..Seen::default() });
        let mut turns = lock(&self.turns);
        let taken = turns.entry((name.to_owned(), incoming.task())).or_default();
        *taken += 1;
        *taken - 1
    }

    /// Does these steps, one after another.
    pub(super) fn run<'a>(
        &'a self,
        steps: &'a [Step],
        incoming: &'a Incoming,
        outlet: &'a Outlet,
        context: Context,
    ) -> BoxFuture<'a, ()> {
        async move {
            for step in steps {
                match step {
                    Step::Repeat { times, steps } => {
                        for _ in 0..times.unwrap_or(u32::MAX) {
                            self.run(steps, incoming, outlet, context).await;
                        }
                    }
                    Step::Turns(turns) => {
                        if let Some(steps) = turns.get(context.turn).or(turns.last()) {
                            self.run(steps, incoming, outlet, context).await;
                        }
                    }
                    Step::IfFile { path, steps, otherwise } => {
                        let steps = if path.exists() { steps } else { otherwise };
                        self.run(steps, incoming, outlet, context).await;
                    }
                    Step::Default => self.usual(incoming, outlet).await,
                    step => match self.out(step, incoming, context) {
                        Some(out) => outlet.put(out).await,
                        None => self.act(step).await,
                    },
                }
            }
        }
        .boxed()
    }

    /// What a step gives out, if it gives anything out.
    fn out(&self, step: &Step, incoming: &Incoming, context: Context) -> Option<Out> {
        Some(match step {
            Step::Text(text) => {
                let text = json!(self.filled(text, incoming, context)).to_string();
                let result = format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#);
                Out::Message(incoming.result(&replies::decorated(&self.script, incoming, &result)))
            }
            Step::Blob(bytes) => {
                let result = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "A".repeat(*bytes));
                Out::Message(incoming.result(&replies::decorated(&self.script, incoming, &result)))
            }
            Step::Structured(raw) => {
                let structured = self.filled(raw.get(), incoming, context);
                let result = format!(r#"{{"content":[],"structuredContent":{structured}}}"#);
                Out::Message(incoming.result(&replies::decorated(&self.script, incoming, &result)))
            }
            Step::Failure(text) => {
                let text = json!(self.filled(text, incoming, context));
                let result = format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":true}}"#);
                Out::Message(incoming.result(&replies::decorated(&self.script, incoming, &result)))
            }
            Step::Result(raw) => Out::Message(incoming.result(raw.get())),
            Step::Error(raw) => {
                Out::Message(format!(r#"{{"jsonrpc":"2.0","id":{},"error":{}}}"#, incoming.id(), raw.get()))
            }
            Step::Send(raw) => {
                let text = raw.get().replace(r#""$ID""#, "$ID").replace(r#""$TOKEN""#, "$TOKEN");
                Out::Message(self.filled(&text, incoming, context))
            }
            Step::Progress(progress) => {
                let token = incoming.meta("progressToken")?;
                let params = json!({ "progressToken": token, "progress": progress, "total": 100 });
                let method = "notifications/progress";
                Out::Message(json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string())
            }
            Step::Bytes(text) => Out::Bytes(self.filled(text, incoming, context)),
            Step::Status(status) => Out::Status(status.clone()),
            Step::Resumable(id) => Out::Resumable(id.clone()),
            Step::End => Out::End,
            Step::Reset => Out::Reset,
            _ => return None,
        })
    }

    /// Does a step that gives nothing out.
    async fn act(&self, step: &Step) {
        match step {
            Step::Stderr(text) => {
                // A reader that is gone is the test's own doing.
                let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
            }
            Step::PauseMs(ms) => pause(Duration::from_millis(*ms)).await,
            Step::UntilFile(path) => {
                while !path.exists() {
                    pause(LOOK_EVERY).await;
                }
            }
            Step::Touch(path) => std::fs::write(path, "").expect("the script names a writable path"),
            Step::Tools(tools) => lock(&self.tools).clone_from(tools),
            Step::Hang => std::future::pending().await,
            Step::Die(code) => exit(*code),
            Step::Kill(number) => {
                let signal = rustix::process::Signal::from_named_raw(*number).expect("a signal's number");
                process::signal(std::process::id(), signal);
                std::future::pending::<()>().await;
            }
            _ => {}
        }
    }

    fn filled(&self, text: &str, incoming: &Incoming, context: Context) -> String {
        if !text.contains('$') {
            return text.to_owned();
        }
        let params = incoming.params();
        let environment: std::collections::BTreeMap<String, String> = std::env::vars().collect();
        let raw = incoming.params.as_deref().map_or("null", RawValue::get);
        let cwd = std::env::current_dir().unwrap_or_default();
        // The longer names first: `$N` is no part of `$NAME`, but `$S` would be one of `$SN`.
        text.replace("$ARGS", &params.get("arguments").map_or("absent".to_owned(), ToString::to_string))
            .replace("$PARAMS", raw)
            .replace("$TASK", &incoming.task())
            .replace("$TURN", &(context.turn + 1).to_string())
            .replace("$TOKEN", &incoming.meta("progressToken").unwrap_or_default().to_string())
            .replace("$ENV", &json!(environment).to_string())
            .replace("$CWD", &cwd.display().to_string())
            .replace("$PID", &std::process::id().to_string())
            .replace("$SN", &context.session_calls.to_string())
            .replace("$ID", incoming.id())
            .replace("$N", &self.calls.load(Ordering::Relaxed).to_string())
    }
}

async fn pause(time: Duration) {
    let _ = timeout(time, std::future::pending::<()>()).await;
}
