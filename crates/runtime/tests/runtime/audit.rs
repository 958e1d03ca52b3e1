//! The audit log: a row for whatever is done or refused, and what holds while the store is slow, away or gone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou_core::bounds::{AUDIT_BUFFER, AUDIT_FLUSH, AUDIT_FORGET_BATCH, AUDIT_LINGER};
use caribou_core::failure::Code;
use caribou_core::guardrails::{Guardrails, Written};
use caribou_core::identity::{Principal, Roles};
use caribou_core::ids::{BootId, RequestId, Scope, UserId};
use caribou_ports::BoxFuture;
use caribou_ports::store::{Audit, AuditFilter, AuditRow, Party, StoreError, StoredAuditRow};
use caribou_runtime::{AuditOptions, CallTool, Caller, Door, OnFull, Options, Outside, Runtime};

use crate::fake::{Fake, FakeConnector, anybody, call, server};

/// An audit log in memory that can be told to misbehave.
#[derive(Default)]
struct Log {
    batches: Mutex<Vec<Vec<AuditRow>>>,
    /// Refuses.
    away: AtomicBool,
    /// Takes what it is given once more, and cannot say so.
    speechless: AtomicBool,
    /// Never answers.
    stuck: AtomicBool,
    panicking: AtomicBool,
    /// How much there is to forget.
    old: Mutex<u64>,
    forgotten: Mutex<Vec<(Duration, u64)>>,
    asked: Mutex<Vec<AuditFilter>>,
}

impl Log {
    fn rows(&self) -> Vec<AuditRow> {
        self.batches.lock().unwrap().concat()
    }

    /// What was done, with which tool, how it ended.
    fn told(&self) -> Vec<(String, String, String)> {
        self.rows().into_iter().map(|row| (row.action, row.tool, row.outcome)).collect()
    }

    async fn has(&self, rows: usize) {
        while self.rows().len() < rows {
            tokio::time::advance(AUDIT_LINGER).await;
            tokio::task::yield_now().await;
        }
    }
}

impl Audit for Log {
    fn append(&self, rows: Vec<AuditRow>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            assert!(!self.panicking.swap(false, Ordering::SeqCst), "it was told to");
            if self.stuck.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            if self.away.load(Ordering::SeqCst) {
                return Err(StoreError::Unavailable("it is away".to_owned()));
            }
            self.batches.lock().unwrap().push(rows);
            if self.speechless.swap(false, Ordering::SeqCst) {
                return Err(StoreError::OutcomeUnknown("the connection broke off".to_owned()));
            }
            Ok(())
        })
    }

    fn read(&self, filter: AuditFilter, limit: u32) -> BoxFuture<'_, Result<Vec<StoredAuditRow>, StoreError>> {
        self.asked.lock().unwrap().push(filter);
        let rows = (1..).zip(self.rows()).map(|(id, row)| StoredAuditRow { id, row });
        let page = rows.take(limit as usize).collect();
        Box::pin(async { Ok(page) })
    }

    fn forget(&self, age: Duration, limit: u32) -> BoxFuture<'_, Result<u64, StoreError>> {
        let mut old = self.old.lock().unwrap();
        let now = (*old).min(u64::from(limit));
        *old -= now;
        self.forgotten.lock().unwrap().push((age, now));
        Box::pin(async move { Ok(now) })
    }
}

async fn start(log: &Arc<Log>, options: Options) -> (Runtime, Arc<Fake>) {
    let fake = Arc::new(Fake::default());
    let audit: Arc<dyn Audit> = log.clone();
    let outside = Outside { audit: Some(audit), ..Outside::from(Arc::new(FakeConnector(fake.clone()))) };
    let servers = vec![server("s", |_| ())];
    let runtime = Runtime::start(servers, options, outside, BootId::from("boot")).await.unwrap();
    runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap();
    (runtime, fake)
}

/// Denies the tool `s_hang`, whose refusal costs nothing.
fn denying() -> Guardrails {
    let denied_tools = vec!["s_hang".to_owned()];
    let provider = Some("allowlist".to_owned());
    Guardrails::of(Written { enabled: true, fail_closed: true, provider, allowed_tools: None, denied_tools }).0
}

fn options(on_full: OnFull) -> Options {
    Options { guardrails: denying(), audit: AuditOptions { on_full, ..AuditOptions::default() }, ..Options::default() }
}

/// Fills the buffer: the writer holds a batch that it cannot store, and all places are taken.
async fn fill(runtime: &Runtime) {
    let mut refused = 0;
    loop {
        match runtime.call_tool(call("s_hang", "t")).await.map(|_| ()).unwrap_err().code {
            Code::Denied => refused += 1,
            code => break assert_eq!((code, refused >= AUDIT_BUFFER), (Code::Unavailable, true)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_call_has_one_row_whatever_became_of_it() {
    let log = Arc::new(Log::default());
    let (runtime, fake) = start(&log, options(OnFull::Refuse)).await;
    assert!(runtime.call_tool(call("s_count", "t")).await.is_ok());
    for tool in ["s_error", "s_die", "s_hang", "s_unknown"] {
        assert!(runtime.call_tool(call(tool, "t")).await.is_err());
    }
    let mut short = call("s_slow", "t");
    short.timeout = Some(Duration::from_millis(10));
    assert!(runtime.call_tool(short).await.is_err());
    let left = tokio::time::timeout(Duration::from_millis(500), runtime.call_tool(call("s_slow", "t"))).await;
    assert!(left.is_err() && fake.cancelled.load(Ordering::SeqCst) > 0);
    log.has(7).await;
    let expected = [
        ("s_count", "ok"),
        ("s_error", "upstream_error"),
        ("s_die", "outcome_unknown"),
        ("s_hang", "denied"),
        ("s_unknown", "not_found"),
        ("s_slow", "timeout"),
        ("s_slow", "cancelled"),
    ];
    let expected = expected.map(|(tool, outcome)| ("call_tool".to_owned(), tool.to_owned(), outcome.to_owned()));
    assert_eq!(log.told(), expected);
    let rows = log.rows();
    assert_eq!(rows[6].duration_ms, 500);
    assert_eq!(rows[3].server, "s", "also of a call that was denied");
    assert_eq!(rows[4].server, "");
}

#[tokio::test(start_paused = true)]
async fn a_row_tells_who_for_whom_and_by_which_door() {
    let log = Arc::new(Log::default());
    let (runtime, _) = start(&log, Options::default()).await;
    let principal = Principal { id: "key-7".into(), ..Principal::local() };
    let caller = Caller { principal, door: Door::Grpc, request_id: None };
    let scope = Scope::new(Some("bob"), Some("t9"));
    let request_id = RequestId::from("req-1");
    let asked = CallTool { caller: caller.clone(), scope: scope.clone(), request_id, ..call("s_slow", "t") };
    runtime.call_tool(asked).await.unwrap();
    let closing = Caller { request_id: Some(RequestId::from("req-2")), ..caller };
    runtime.close_sessions(&closing, &scope, None).await.unwrap();
    log.has(2).await;
    let mut rows = log.rows();
    assert!(rows.iter().all(|row| row.at_ms > 1_700_000_000_000), "{rows:?}");
    assert!(rows[0].duration_ms >= 1_000, "{rows:?}");
    let text = str::to_owned;
    for row in &mut rows {
        (row.at_ms, row.duration_ms) = (0, 0);
    }
    let called = AuditRow {
        at_ms: 0,
        principal: text("key-7"),
        user: text("bob"),
        thread: text("t9"),
        action: text("call_tool"),
        server: text("s"),
        tool: text("s_slow"),
        outcome: text("ok"),
        duration_ms: 0,
        request_id: text("req-1"),
        door: text("grpc"),
    };
    let closed = AuditRow {
        action: text("close_sessions"),
        server: String::new(),
        tool: String::new(),
        request_id: text("req-2"),
        ..called.clone()
    };
    assert_eq!(rows, [called, closed]);
}

#[tokio::test(start_paused = true)]
async fn rows_are_stored_many_at_a_time_and_a_lonely_one_soon() {
    let log = Arc::new(Log::default());
    let (runtime, _) = start(&log, options(OnFull::Refuse)).await;
    runtime.call_tool(call("s_hang", "t")).await.map(|_| ()).unwrap_err();
    let asked = tokio::time::Instant::now();
    while log.rows().is_empty() {
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    assert!(asked.elapsed() <= AUDIT_LINGER * 2, "{:?}", asked.elapsed());
    for _ in 0..1_000 {
        runtime.call_tool(call("s_hang", "t")).await.map(|_| ()).unwrap_err();
    }
    log.has(1_001).await;
    let sizes: Vec<usize> = log.batches.lock().unwrap().iter().map(Vec::len).collect();
    assert_eq!(sizes, [1, 256, 256, 256, 232]);
}

/// architecture.md §10, audit when the store is away; invariant B1.
#[tokio::test(start_paused = true)]
async fn a_call_whose_row_has_no_place_is_refused_before_anything_is_sent() {
    let log = Arc::new(Log { away: AtomicBool::new(true), ..Log::default() });
    let (runtime, fake) = start(&log, options(OnFull::Refuse)).await;
    fill(&runtime).await;
    let refused = runtime.call_tool(call("s_count", "t")).await.map(|_| ()).unwrap_err();
    assert_eq!((refused.code, fake.calls.load(Ordering::SeqCst)), (Code::Unavailable, 0));
    assert!(refused.detail.contains("`audit.on_full`") && refused.retry_after.is_some(), "{refused:?}");
    let scope = Scope::new(None, None);
    let closing = runtime.close_sessions(&anybody(), &scope, None).await.unwrap_err();
    assert_eq!(closing.code, Code::Unavailable);
    // The store comes back: nothing that was done is missing, and calls are served again.
    log.away.store(false, Ordering::SeqCst);
    log.has(AUDIT_BUFFER).await;
    assert!(runtime.call_tool(call("s_count", "t")).await.is_ok());
    runtime.stop().await;
    let told = log.told();
    assert_eq!(told.last().unwrap(), &("call_tool".to_owned(), "s_count".to_owned(), "ok".to_owned()));
    assert_eq!(told.iter().filter(|(_, _, outcome)| outcome == "ok").count(), 1);
}

/// architecture.md §10, audit when the store is away.
#[tokio::test(start_paused = true)]
async fn a_call_whose_row_has_no_place_is_made_without_one_where_that_is_set() {
    let log = Arc::new(Log { away: AtomicBool::new(true), ..Log::default() });
    let (runtime, fake) = start(&log, options(OnFull::DropAndCount)).await;
    for _ in 0..AUDIT_BUFFER + 1_000 {
        assert_eq!(runtime.call_tool(call("s_hang", "t")).await.map(|_| ()).unwrap_err().code, Code::Denied);
    }
    assert!(runtime.call_tool(call("s_count", "t")).await.is_ok());
    assert_eq!(fake.calls.load(Ordering::SeqCst), 1);
    log.away.store(false, Ordering::SeqCst);
    log.has(AUDIT_BUFFER).await;
    runtime.stop().await;
    let told = log.told();
    assert!(told.len() < AUDIT_BUFFER + 1_000, "{}", told.len());
    assert!(told.iter().all(|(_, _, outcome)| outcome == "denied"), "the call without a row is not in it");
}

#[tokio::test(start_paused = true)]
async fn a_batch_the_store_may_have_taken_is_given_to_it_again() {
    let log = Arc::new(Log { speechless: AtomicBool::new(true), ..Log::default() });
    let (runtime, _) = start(&log, Options::default()).await;
    runtime.call_tool(call("s_count", "t")).await.unwrap();
    log.has(2).await;
    let rows = log.rows();
    assert_eq!(rows[0], rows[1]);
}

#[tokio::test(start_paused = true)]
async fn neither_a_store_that_panics_nor_one_that_hangs_ends_the_log() {
    let log = Arc::new(Log { panicking: AtomicBool::new(true), ..Log::default() });
    let (runtime, _) = start(&log, Options::default()).await;
    runtime.call_tool(call("s_count", "a")).await.unwrap();
    log.has(1).await;
    log.stuck.store(true, Ordering::SeqCst);
    runtime.call_tool(call("s_count", "b")).await.unwrap();
    tokio::time::advance(AUDIT_LINGER * 2).await;
    log.stuck.store(false, Ordering::SeqCst);
    log.has(2).await;
    assert_eq!(log.rows().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_orderly_stop_stores_what_is_buffered_within_its_bound() {
    let log = Arc::new(Log::default());
    let (runtime, _) = start(&log, Options::default()).await;
    for _ in 0..300 {
        runtime.call_tool(call("s_count", "t")).await.unwrap();
    }
    runtime.stop().await;
    assert_eq!(log.rows().len(), 300);

    let away = Arc::new(Log { stuck: AtomicBool::new(true), ..Log::default() });
    let (runtime, _) = start(&away, Options::default()).await;
    runtime.call_tool(call("s_count", "t")).await.unwrap();
    let asked = tokio::time::Instant::now();
    runtime.stop().await;
    assert!(asked.elapsed() >= AUDIT_FLUSH && asked.elapsed() < AUDIT_FLUSH + Duration::from_secs(1));
    runtime.stop().await;
}

#[tokio::test(start_paused = true)]
async fn old_rows_are_forgotten_every_hour_a_thousand_at_a_time() {
    let log = Arc::new(Log { old: Mutex::new(2_500), ..Log::default() });
    let age = Duration::from_secs(24 * 3_600);
    let audit = AuditOptions { retention: age, ..AuditOptions::default() };
    let (_runtime, _) = start(&log, Options { audit, ..Options::default() }).await;
    let soon = Duration::from_secs(7 * 60);
    tokio::time::sleep(soon).await;
    let batch = u64::from(AUDIT_FORGET_BATCH);
    assert_eq!(*log.forgotten.lock().unwrap(), [(age, batch), (age, batch), (age, 500)]);
    *log.old.lock().unwrap() = 1;
    tokio::time::sleep(Duration::from_secs(67 * 60)).await;
    assert!(log.forgotten.lock().unwrap().len() > 3);
    assert_eq!(*log.old.lock().unwrap(), 0);
}

/// Invariant P1.
#[tokio::test(start_paused = true)]
async fn admins_read_all_and_others_what_concerns_them() {
    let log = Arc::new(Log::default());
    let (runtime, _) = start(&log, Options::default()).await;
    let principal =
        Principal { id: "key-ann".into(), user: UserId::new("ann"), roles: Roles::default(), ..Principal::local() };
    let ann = Caller { principal, door: Door::Rest, request_id: None };
    let of_bob = AuditFilter { user: Some("bob".to_owned()), ..AuditFilter::default() };
    runtime.read_audit(&anybody(), of_bob.clone(), 10).await.unwrap();
    runtime.read_audit(&ann, of_bob.clone(), 10).await.unwrap();
    let party = Some(Party { principal: "key-ann".to_owned(), user: "ann".to_owned() });
    assert_eq!(*log.asked.lock().unwrap(), [of_bob.clone(), AuditFilter { party, ..of_bob }]);
    let agent = Principal { roles: Roles { agent: true, admin: false }, ..ann.principal };
    runtime.read_audit(&Caller { principal: agent, ..anybody() }, AuditFilter::default(), 10).await.unwrap();
    assert!(log.asked.lock().unwrap()[2].party.is_some(), "an agent is no admin");
}

#[tokio::test(start_paused = true)]
async fn a_replica_without_a_log_records_nothing_and_says_so() {
    let fake = Arc::new(Fake::default());
    let runtime = crate::fake::start(&fake, vec![server("s", |_| ())], Options::default()).await;
    assert!(runtime.call_tool(call("s_count", "t")).await.is_ok());
    let refused = runtime.read_audit(&anybody(), AuditFilter::default(), 10).await.unwrap_err();
    assert_eq!(refused.code, Code::NotFound);
}
