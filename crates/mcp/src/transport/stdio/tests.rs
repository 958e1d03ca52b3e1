//! Sessions with small real children, from their start to the end of their groups.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou_core::config::{Secret, ServerConfig, Transport};
use caribou_core::era::Protocol;
use caribou_core::ids::BootId;
use caribou_core::masker::Masker;
use caribou_ports::guard::Exit;
use caribou_ports::mcp::{
    CallError, Connector, Credentials, Oddity, OpenError, OpenSession, Progress, Session, SessionEvent, ToolCall,
};
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};

use crate::scripted::stdio_server;
use crate::{DirectHost, UpstreamOptions, Upstreams};

const SOON: Duration = Duration::from_secs(30);

/// What every fake server starts with: reading and writing messages, a legacy handshake.
const PRELUDE: &str = r#"
import sys, json, os, time, threading
out = sys.stdout.buffer
def raw(b):
    out.write(b); out.flush()
def send(**m):
    raw(json.dumps(dict(jsonrpc="2.0", **m)).encode() + b"\n")
def text(i, t):
    send(id=i, result={"content": [{"type": "text", "text": t}]})
def hello(i):
    send(id=i, result={"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "fake"}})
def seen(what):
    with open(os.environ["SEEN"], "a") as f: f.write(what + "\n")
def messages():
    for line in sys.stdin.buffer:
        m = json.loads(line)
        if m["method"] == "server/discover": send(id=m["id"], error={"code": -32601, "message": "no"})
        elif m["method"] == "initialize": hello(m["id"])
        else: yield m
"#;

struct Fake {
    server: ServerConfig,
    options: UpstreamOptions,
    folder: tempfile::TempDir,
    events: Arc<Mutex<Vec<SessionEvent>>>,
}

impl Fake {
    /// A Python server whose own part is `script`.
    fn python(script: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut server = stdio_server(&["python3", "-c", &format!("{PRELUDE}\n{script}")]);
        if let Transport::Stdio(stdio) = &mut server.transport {
            let seen = folder.path().join("seen").display().to_string();
            stdio.env = vec![("SEEN".to_owned(), Secret::new(seen)), ("TOKEN".to_owned(), Secret::new("hunter22"))];
        }
        server.masker = Masker::new(["hunter22".to_owned()]);
        let mut options = UpstreamOptions::new(BootId::new("boot-1"));
        options.child_grace = Duration::from_millis(200);
        Self { server, options, folder, events: Arc::default() }
    }

    fn request(&self, bound: Option<Duration>) -> OpenSession {
        let events = Arc::clone(&self.events);
        OpenSession {
            server: Arc::new(self.server.clone()),
            label: "fake/ann:t1".to_owned(),
            folder: None,
            timeout: bound,
            abandoned: Box::pin(std::future::pending()),
            credentials: Credentials::default(),
            watch_lists: true,
            resume: None,
            events: Arc::new(move |event| events.lock().unwrap().push(event)),
        }
    }

    fn upstreams(&self) -> Arc<Upstreams> {
        Upstreams::new(self.options.clone(), Arc::new(DirectHost)).expect("set up")
    }

    async fn try_open(&self, bound: Option<Duration>) -> Result<Arc<dyn Session>, OpenError> {
        timeout(SOON, self.upstreams().open(self.request(bound))).await.expect("in time")
    }

    async fn open(&self) -> Arc<dyn Session> {
        self.try_open(None).await.unwrap_or_else(|error| panic!("not opened: {error}"))
    }

    /// The lines the server noted, once `enough` says so.
    async fn seen(&self, enough: impl Fn(&[String]) -> bool) -> Vec<String> {
        let deadline = Instant::now() + SOON;
        loop {
            let text = std::fs::read_to_string(self.folder.path().join("seen")).unwrap_or_default();
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            if enough(&lines) || Instant::now() > deadline {
                return lines;
            }
            tokio::task::yield_now().await;
        }
    }
}

fn call(name: &str, arguments: &str) -> ToolCall {
    let arguments = Some(RawValue::from_string(arguments.to_owned()).expect("valid JSON"));
    ToolCall { name: name.into(), arguments, meta: Vec::new(), headers: Vec::new(), progress: None, task: None }
}

async fn called(session: &Arc<dyn Session>, name: &str) -> Result<String, CallError> {
    let result = timeout(SOON, session.call_tool(call(name, "{}"))).await.expect("in time")?;
    let result: serde_json::Value = serde_json::from_str(result.get()).expect("JSON");
    Ok(result["content"][0]["text"].as_str().unwrap_or_default().to_owned())
}

fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

#[tokio::test]
async fn a_call_goes_out_and_comes_back_and_a_close_leaves_nothing() {
    let fake = Fake::python("for m in messages():\n  if 'id' in m: text(m['id'], os.environ['CARIBOU_SESSION'])");
    let session = fake.open().await;
    assert_eq!(session.facts().version, "2025-06-18");
    assert_eq!(called(&session, "t").await.expect("answered"), "fake/ann:t1");
    let pid = session.facts().pid.expect("a child");
    assert!(is_running(pid));
    timeout(SOON, session.close()).await.expect("closed");
    assert!(!is_running(pid));
    timeout(SOON, session.close()).await.expect("closed again");
    let refused = called(&session, "t").await.expect_err("closed");
    assert!(matches!(refused, CallError::Disconnected { sent: false, .. }), "{refused}");
}

#[tokio::test]
async fn framing_and_noise_of_all_kinds_are_accepted() {
    let fake = Fake::python(
        r#"
raw(b"\xef\xbb\xbfServer v1 ready \x1b[32mok\x1b[0m\n42\nnull\n[]\n")
for m in messages():
    if "id" not in m: continue
    i = m["id"]
    raw(b'{"level":"info"}\r\n\n')
    if m["params"]["name"] == "array":
        raw(json.dumps([{"jsonrpc": "2.0", "method": "x"},
            {"jsonrpc": "2.0", "id": str(i), "result": {"content": [{"type": "text", "text": "in an array"}]}}]).encode())
        raw(b"\r\n")
    elif m["params"]["name"] == "damaged":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"t":"\xff"}}\n' % i)
    else:
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"text":"last words"}]}}' % i)
        os._exit(0)
"#,
    );
    let session = fake.open().await;
    assert_eq!(called(&session, "array").await.expect("answered"), "in an array");
    let damaged = called(&session, "damaged").await.expect_err("not UTF-8");
    assert!(matches!(damaged, CallError::Unreadable(_)), "{damaged}");
    assert_eq!(called(&session, "last").await.expect("answered"), "last words");
    let late = called(&session, "late").await.expect_err("nobody reads it any more");
    assert!(matches!(late, CallError::Disconnected { sent: false, .. }), "{late}");
    let told = fake.events.lock().unwrap();
    assert!(
        [Oddity::NotAMessage, Oddity::TextId].iter().all(|&odd| told.contains(&SessionEvent::Oddity(odd))),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_crash_at_start_is_told_at_once_with_exit_and_masked_stderr() {
    let fake = Fake::python(
        "seen('start')\nfor i in range(40): sys.stderr.write('at frame %d\\n' % i)\n\
         sys.stderr.write('ImportError: fake ' + os.environ['TOKEN'] + '\\n')\nsys.stderr.flush(); os._exit(3)",
    );
    let OpenError::Exited(disconnect) = fake.try_open(None).await.err().expect("it crashed") else {
        panic!("not told as an exit")
    };
    assert_eq!(disconnect.exit, Some(Exit::Code(3)));
    assert!(disconnect.stderr.ends_with("ImportError: fake ***"), "{disconnect}");
    assert_eq!(fake.seen(|lines| !lines.is_empty()).await, ["start"], "it is not started again by the session");
}

#[tokio::test]
async fn an_exit_fails_all_calls_even_while_a_grandchild_holds_stdout() {
    // Contract 4.4, disconnect predicate.
    let fake = Fake::python(
        "import subprocess\nchild = subprocess.Popen(['sleep', '600'])\nfor m in messages():\n\
         \x20 if m.get('params', {}).get('name') == 'pid': text(m['id'], str(child.pid))\n\
         \x20 if m.get('params', {}).get('name') == 'die': os._exit(7)",
    );
    let session = fake.open().await;
    let grandchild: u32 = called(&session, "pid").await.expect("answered").parse().expect("a pid");
    let (slow, died) = tokio::join!(called(&session, "slow"), called(&session, "die"));
    for failed in [slow, died] {
        let CallError::Disconnected { disconnect, sent: true } = failed.expect_err("it died") else {
            panic!("not told as a disconnect")
        };
        assert_eq!(disconnect.exit, Some(Exit::Code(7)));
    }
    assert_eq!(timeout(SOON, session.ended()).await.expect("told").exit, Some(Exit::Code(7)));
    timeout(SOON, session.close()).await.expect("closed");
    assert!(!is_running(grandchild));
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_once_and_an_answered_one_is_not() {
    let fake = Fake::python(
        "for m in messages():\n  seen(json.dumps([m['method'], m.get('params', {}).get('requestId'), m.get('id')]))\n\
         \x20 if m.get('params', {}).get('name') == 'quick': text(m['id'], 'ok')",
    );
    let session = fake.open().await;
    called(&session, "quick").await.expect("answered");
    timeout(Duration::from_millis(100), session.call_tool(call("slow", "{}"))).await.expect_err("no answer");
    called(&session, "quick").await.expect("answered");
    let seen = fake.seen(|lines| lines.len() == 5).await;
    let sent = r#"["tools/call", null, 4]"#;
    let cancelled = r#"["notifications/cancelled", 4, null]"#;
    assert!(seen.iter().any(|line| line == sent), "{seen:?}");
    assert_eq!(seen.iter().filter(|line| line.contains("cancelled")).collect::<Vec<_>>(), [cancelled]);
}

#[tokio::test]
async fn what_comes_before_the_handshake_does_no_harm() {
    let fake = Fake::python(
        r#"
for line in sys.stdin.buffer:
    m = json.loads(line)
    if m.get("method") == "initialize":
        send(method="notifications/tools/list_changed")
        send(method="notifications/message", params={"data": "starting"})
        send(id=m["id"], method="ping")
        hello(m["id"])
    elif "method" not in m: seen(line.decode().strip())
    elif "id" in m: send(id=m["id"], error={"code": -32600, "message": "initialize first"})
"#,
    );
    let _session = fake.open().await;
    assert_eq!(*fake.events.lock().unwrap(), [SessionEvent::ToolsChanged]);
    assert_eq!(fake.seen(|lines| !lines.is_empty()).await, [r#"{"jsonrpc":"2.0","id":2,"result":{}}"#]);
}

#[tokio::test]
async fn progress_reaches_the_call_it_names() {
    let fake = Fake::python(
        "for m in messages():\n  if 'id' not in m: continue\n  t = m['params']['_meta']['progressToken']\n\
         \x20 for token in (t, 'bogus'): send(method='notifications/progress', params={'progressToken': token, 'progress': 1})\n\
         \x20 text(m['id'], 'ok')\n  send(method='notifications/progress', params={'progressToken': t, 'progress': 2})",
    );
    let session = fake.open().await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&heard);
    let progress: Arc<dyn Fn(Progress) + Send + Sync> = Arc::new(move |progress| {
        let Progress::Progress(report) = progress else { return };
        sink.lock().unwrap().push(report.get().to_owned());
    });
    let call = ToolCall { progress: Some(progress), ..call("work", "{}") };
    timeout(SOON, session.call_tool(call)).await.expect("in time").expect("answered");
    assert_eq!(*heard.lock().unwrap(), [r#"{"progress":1}"#]);
}

#[tokio::test]
async fn an_endless_line_ends_the_session_after_what_came_before_it() {
    let fake = Fake {
        options: UpstreamOptions { max_message_bytes: 100_000, ..Fake::python("").options },
        ..Fake::python(
            "waiting = []\nfor m in messages():\n  if 'id' not in m: continue\n\
             \x20 if m['params']['name'] == 'wait': waiting.append(m['id']); continue\n\
             \x20 text(waiting[0], 'before the flood')\n  while True: raw(b'A' * 65536)",
        )
    };
    let session = fake.open().await;
    let (waited, dripped) = tokio::join!(called(&session, "wait"), called(&session, "drip"));
    assert_eq!(waited.expect("answered"), "before the flood");
    let failed = dripped.expect_err("endless").to_string();
    assert!(failed.contains("is longer than"), "{failed}");
    let pid = session.facts().pid.expect("a child");
    timeout(SOON, session.close()).await.expect("closed");
    assert!(!is_running(pid));
}

#[tokio::test]
async fn a_flood_on_stderr_without_a_line_end_blocks_nobody() {
    let fake = Fake::python(
        "def flood():\n  for _ in range(1024): os.write(2, b'x' * 1024)\nflood()\n\
         for m in messages():\n  if 'id' in m: flood(); text(m['id'], 'done')",
    );
    let session = fake.open().await;
    for _ in 0..3 {
        assert_eq!(called(&session, "t").await.expect("answered"), "done");
    }
    assert!(session.stderr_tail().len() <= caribou_core::bounds::STDERR_RING_BYTES);
}

#[tokio::test]
async fn a_mute_server_fails_at_its_bound_naming_what_was_awaited() {
    // Contract 4.5, `session_init_timeout`.
    let fake = Fake::python(
        "seen(str(os.getpid()))\nsys.stderr.write('still thinking\\n')\nsys.stderr.flush()\n__import__('signal').pause()",
    );
    let error = fake.try_open(Some(Duration::from_secs(3))).await.err().expect("mute").to_string();
    for part in ["`fake`", "of 3 s", "`initialize`", "still thinking"] {
        assert!(error.contains(part), "{error}");
    }
    let pid = fake.seen(|lines| !lines.is_empty()).await[0].parse().expect("a pid");
    assert!(!is_running(pid), "nothing is left when the error is returned");
}

#[tokio::test]
async fn an_abandoned_bring_up_is_undone_before_it_is_told() {
    // Contract 4.3, cancelled during init.
    let fake = Fake::python("seen(str(os.getpid()))\n__import__('signal').pause()");
    let (abandon, abandoned) = tokio::sync::oneshot::channel::<()>();
    let abandoned = Box::pin(async { drop(abandoned.await) });
    let opening = tokio::spawn(fake.upstreams().open(OpenSession { abandoned, ..fake.request(None) }));
    let pid = fake.seen(|lines| !lines.is_empty()).await[0].parse().expect("a pid");
    drop(abandon);
    let error = timeout(SOON, opening).await.expect("in time").expect("joined").err();
    assert!(matches!(error, Some(OpenError::Abandoned)));
    assert!(!is_running(pid));
}

#[tokio::test]
async fn a_server_that_ends_at_the_probe_is_opened_without_one() {
    let fake = Fake::python(
        "seen('start')\nm = json.loads(sys.stdin.buffer.readline())\nif m['method'] != 'initialize': os._exit(1)\n\
         hello(m['id'])\nfor m in messages(): pass",
    );
    let session = fake.open().await;
    assert_eq!(session.facts().version, "2025-06-18");
    assert_eq!(fake.seen(|_| true).await, ["start", "start"]);
}

#[tokio::test]
async fn a_modern_server_is_asked_to_tell_of_changes() {
    let mut fake = Fake::python(
        r#"
for line in sys.stdin.buffer:
    m = json.loads(line)
    if m["method"] == "server/discover":
        send(id=m["id"], result={"resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {"listChanged": True}}, "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "m"}}})
    if m["method"] == "subscriptions/listen":
        seen(json.dumps(m["params"]["notifications"]))
        send(method="notifications/tools/list_changed")
    if m["method"] == "tools/call": text(m["id"], m["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"])
"#,
    );
    fake.server.protocol = Protocol::Modern;
    let session = fake.open().await;
    assert_eq!(called(&session, "t").await.expect("answered"), "2026-07-28");
    assert_eq!(session.facts().server_info.as_ref().map(|info| info.get()), Some(r#"{"name": "m"}"#));
    assert_eq!(fake.seen(|lines| !lines.is_empty()).await, [r#"{"toolsListChanged": true}"#]);
}

#[tokio::test]
async fn a_dropped_session_leaves_no_child() {
    let fake = Fake::python("for m in messages(): pass");
    let session = fake.open().await;
    let pid = session.facts().pid.expect("a child");
    drop(session);
    let gone = async {
        while is_running(pid) {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, gone).await.expect("gone");
}

#[tokio::test]
async fn two_hundred_parallel_calls_answered_twice_in_one_write_are_not_mixed_up() {
    let fake = Fake::python(
        "for m in messages():\n  if 'id' not in m: continue\n\
         \x20 r = json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': m['params']['arguments']}).encode() + b'\\n'\n\
         \x20 raw(r + r)",
    );
    let session = fake.open().await;
    let calls = (0..200).map(|n| {
        let session = Arc::clone(&session);
        async move {
            let answer = session.call_tool(call("echo", &format!("{{\"n\":\n{n}}}"))).await.expect("answered");
            assert_eq!(answer.get(), format!("{{\"n\": {n}}}"));
        }
    });
    timeout(SOON, futures::future::join_all(calls)).await.expect("in time");
}
