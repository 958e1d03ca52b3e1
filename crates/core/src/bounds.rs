//! Every bound of the runtime, with its reason. Invariant B1: every queue, map and wait is bounded.

use std::time::Duration;

/// Sessions that own a child process, those being created counted (contract 4.1).
pub const MAX_LIVE_SESSIONS: usize = 256;

/// Sessions with remote servers: they own no process, so an order of magnitude more than children.
pub const MAX_REMOTE_SESSIONS: usize = 10_000;

/// Calls in flight in one session; a stdio server answers over one pipe, so more only queue inside the server.
pub const MAX_CALLS_PER_SESSION: usize = 64;

/// Calls in flight in one replica, over all sessions.
pub const MAX_CALLS: usize = 4_096;

/// Callers waiting for room in the pool; beyond it the answer is `busy` at once.
pub const MAX_WAITING_FOR_ROOM: usize = 1_024;

/// A session nobody called for this long is closed.
pub const SESSION_IDLE: Duration = Duration::from_secs(30 * 60);

/// Bring-up of one session: spawn or connect, handshake, first list (contract 1.2, `session_init_timeout`).
pub const SESSION_INIT: Duration = Duration::from_secs(60);

/// An ordinary call to a remote server that sets no limit of its own.
pub const HTTP_CALL: Duration = Duration::from_secs(300);

/// The longest any call may take, whoever asks.
pub const CALL_MAX: Duration = Duration::from_secs(3_600);

/// How long a child may take to leave after its stdin was closed, and again after SIGTERM.
pub const CHILD_GRACE: Duration = Duration::from_secs(2);

/// How long a close may take before its waiter goes on without it (contract 4.1).
pub const SESSION_CLOSE: Duration = Duration::from_secs(5);

/// A session that ends by itself this soon after it went live, without one answer, counts as a failed start: a server
/// that cannot work crashes at its first request, and one that is slow to answer is still at it.
pub const BRIEF_LIFE: Duration = Duration::from_secs(10);

/// How long it is remembered that the sessions of one user were brief: beyond the longest wait before the next start.
pub const BRIEF_LIVES_REMEMBERED: Duration = Duration::from_secs(60);

/// How long a caller waits for one of our own actors to look, or to take a change over; it goes on with what is known.
pub const ROLE_ANSWER: Duration = Duration::from_secs(5);

/// Reads and changes of the stored configuration that wait for their turn; they are a person's or a deployment's, and
/// more at once means a loop. Beyond it the answer is `busy` at once.
pub const MAX_CONFIG_REQUESTS: usize = 64;

/// Reading or changing the stored configuration, the changes before it included. Longer than the write of a file and
/// the two steps that put it in force, so that running out of it means a queue or a fault.
pub const CONFIG_ANSWER: Duration = Duration::from_secs(60);

/// One message on stdout of a child, and one JSON answer over HTTP.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// What is kept of a child's stderr: enough for a stack trace.
pub const STDERR_RING_BYTES: usize = 16 * 1024;

/// Pages of one `tools/list`; a server with more is looping (architecture.md §9).
pub const MAX_LIST_PAGES: usize = 1_000;

/// Tools of one server; one that grows for ever is cut here.
pub const MAX_TOOLS_PER_SERVER: usize = 10_000;

/// How long a server may take to answer the probe for its era before it counts as legacy. A mute legacy server
/// costs each first bring-up this much, a slow modern one is misread below it.
pub const ERA_PROBE: Duration = Duration::from_secs(5);

/// How long a listing waits for servers still being discovered; the others are served meanwhile.
pub const LIST_WAIT: Duration = Duration::from_secs(10);

/// Servers that something is remembered of over all configurations: more than any one of them holds. Beyond it all is
/// forgotten and learnt again.
pub const MAX_REMEMBERED_SERVERS: usize = 10_000;

/// Callers whose credential or allowance is remembered; each costs about a hundred bytes.
pub const MAX_REMEMBERED_CALLERS: usize = 100_000;

/// Credentials remembered that are nobody's: whoever guesses makes new ones at will, so only those that are repeated
/// are worth it.
pub const MAX_REMEMBERED_STRANGERS: usize = 1_000;

/// How long it is believed who an API key is: a revoked one is refused after this at the latest.
pub const API_KEY_BELIEVED: Duration = Duration::from_secs(5);

/// How long a verified token is believed without a look at it, if it does not expire sooner: a signing key that was
/// taken back is noticed after this and `KEY_SET_FRESH` at the latest.
pub const TOKEN_BELIEVED: Duration = Duration::from_secs(60);

/// Telling who a caller is, all waits included.
pub const AUTHENTICATE: Duration = Duration::from_secs(10);

/// A bearer credential: tokens of common issuers have 1 to 4 KiB, and headers end at 16 KiB elsewhere.
pub const MAX_BEARER_BYTES: usize = 16 * 1024;

/// Age of a key set after which it is fetched again, so that a key that was taken back is noticed.
pub const KEY_SET_FRESH: Duration = Duration::from_secs(300);

/// Age of a key set after which it is believed no more when it cannot be fetched: an issuer that is away for a while
/// locks nobody out.
pub const KEY_SET_STALE: Duration = Duration::from_secs(3_600);

/// The pause between two fetches of a key set that is held: tokens that name unknown keys cost the issuer no more.
pub const KEY_SET_PAUSE: Duration = Duration::from_secs(60);

/// The same while none is held, so that an issuer that comes back is noticed.
pub const KEY_SET_RETRY: Duration = Duration::from_secs(5);

/// One fetch of a key set.
pub const KEY_SET_FETCH: Duration = Duration::from_secs(5);

/// A key set: those of the largest issuers have some 20 KiB.
pub const MAX_KEY_SET_BYTES: usize = 256 * 1024;

/// Epochs remembered of sessions no longer live, so that a caller is told of the restart.
pub const MAX_REMEMBERED_EPOCHS: usize = 100_000;

/// One token request as a whole: each of its operations has a shorter bound of its own, but a provider that drips
/// bytes passes all of those (contract 7.5, long request).
pub const TOKEN_REQUEST: Duration = Duration::from_secs(120);

/// How long the failure of a token request is the answer for whoever asks next: a broken token endpoint is asked once
/// a second, however many callers there are.
pub const TOKEN_RETRY: Duration = Duration::from_secs(1);

/// How long nobody else may present the refresh token of somebody who does (contract 7.5, lease).
pub const CHAIN_LEASE: Duration = Duration::from_secs(30);

/// How often that lease is renewed while the request runs: twice more before it ends.
pub const CHAIN_RENEW: Duration = Duration::from_secs(10);

/// A lease is not acted under for its last part: between the look at the clock and the first byte something may pause.
pub const CHAIN_MARGIN: Duration = Duration::from_secs(5);

/// A presentation that nobody settled is called unknown this long before it is acted upon: whoever has its successor
/// and could not store it tries every few seconds.
pub const CHAIN_LAST_WORD: Duration = Duration::from_secs(10);

/// How often a chain is looked at while a peer refreshes it and nobody tells that it has (durability.md 3.3, R6).
pub const CHAIN_LOOK: Duration = Duration::from_millis(250);

/// How long somebody waits for the token of one refresh: what it takes a peer to be over, and a presentation after it.
pub const TOKEN_WAIT: Duration = Duration::from_secs(300);

/// The pauses between attempts to store tokens that came and are not stored.
pub const CHAIN_STORE_RETRY: Duration = Duration::from_secs(2);

/// How long a replica that stops waits for refreshes under way, and for what they brought to be stored.
pub const CHAIN_STOP: Duration = Duration::from_secs(20);

/// A background refresh that came to nothing is tried again after this.
pub const REFRESH_AHEAD_AGAIN: Duration = Duration::from_secs(5);

/// What is stored of the reason why a refresh failed.
pub const MAX_CHAIN_ERROR_BYTES: usize = 500;

/// Callers of one connection that wait for its token: every call in flight, and every stream of its sessions.
pub const MAX_WAITING_FOR_TOKEN: usize = 16_384;

/// Rejections by its server refresh a chain once in this while, so that nobody loops through refresh and rejection: a
/// token rejected this soon after it took the place of a rejected one was never good, and no other will be (R7).
pub const TOKEN_REJECTED_AGAIN: Duration = Duration::from_secs(30);

/// The first pause before it is told again that a chain needs a person; each further one is twice as long.
pub const ALARM_AGAIN: Duration = Duration::from_secs(1);

/// How often that is told to a receiver that does not take it: for two minutes, and then its state must say so.
pub const ALARM_ATTEMPTS: u32 = 7;

/// Progress reports waiting for one slow caller; later ones replace none, they are dropped.
pub const PROGRESS_QUEUE: usize = 64;

/// Files and folders of a workspace that are looked at around one call: some 20 ms from a warm cache, twice.
pub const MAX_SNAPSHOT_ENTRIES: usize = 10_000;

/// A look at a thread's files, before a call and after it. Longer only on a file system that hangs; the call then goes
/// on without.
pub const FILES_LOOK: Duration = Duration::from_secs(5);

/// A query of `tool_search`: no model writes a longer one.
pub const MAX_QUERY_BYTES: usize = 4 * 1024;

/// What a query may compile into; a hundred times what a sensible one needs, compiled within milliseconds.
pub const MAX_PATTERN_BYTES: usize = 1024 * 1024;

/// What a search reads of one tool: its name and the beginning of its description.
pub const MAX_SEARCHED_BYTES: usize = 16 * 1024;

/// What is looked at of a user's text: it is scanned for every keyword, before each call of a model.
pub const MAX_PROMOTION_TEXT_BYTES: usize = 256 * 1024;

/// Threads whose promotions are remembered where no store keeps them; the one unused for longest searches again.
pub const MAX_REMEMBERED_PROMOTIONS: usize = 10_000;

/// Connections of one replica to PostgreSQL: with those below, nine replicas fit the 100 that a server allows by default.
pub const STORE_CONNECTIONS: u32 = 8;

/// Of these apart, for its lease: one renews while the other looks at the other replicas.
pub const LEASE_CONNECTIONS: u32 = 2;

/// Connections that read the SQLite file: it answers from memory, so more only compete for the same cores.
pub const STORE_READERS: u32 = 4;

/// One request to the store, the wait for a connection included. Longer than a statement's own bound, so that the
/// database answers first and says why.
pub const STORE_REQUEST: Duration = Duration::from_secs(10);

/// One statement of PostgreSQL, and the wait for SQLite's only writer (durability.md 1.8).
pub const STORE_STATEMENT: Duration = Duration::from_secs(5);

/// The wait for a lock of PostgreSQL; a migration waits no longer, because whoever comes after it waits behind it.
pub const STORE_LOCK: Duration = Duration::from_secs(2);

/// A transaction of ours that PostgreSQL hears nothing of: whoever opened it is frozen or gone (durability.md 1.8).
pub const STORE_IDLE_TRANSACTION: Duration = Duration::from_secs(10);

/// How long a migration waits for another one to finish.
pub const MIGRATION_WAIT: Duration = Duration::from_secs(60);

/// One step of a migration: an index over ten million rows takes minutes.
pub const MIGRATION_STEP: Duration = Duration::from_secs(3_600);

/// How long an interceptor may take to answer when its entry says nothing else: it stands before every call, so one
/// that needs longer is broken.
pub const INTERCEPTOR_ANSWER: Duration = Duration::from_secs(5);

/// Failures in a row after which an interceptor is no longer asked: five callers have waited in vain by then.
pub const INTERCEPTOR_FAILURES: u32 = 5;

/// For how long it is not asked; one call finds out then whether it is back.
pub const INTERCEPTOR_PAUSE: Duration = Duration::from_secs(5);

/// Headers that one interceptor sets on one call; servers refuse requests with more than a hundred.
pub const MAX_INTERCEPTOR_HEADERS: usize = 64;

/// What is shown of an interceptor's reason to deny a call.
pub const MAX_DENIAL_CHARS: usize = 2_000;

/// Audit rows that wait for the store: ten seconds at a thousand calls a second, some megabytes (architecture.md §10).
pub const AUDIT_BUFFER: usize = 10_000;

/// Audit rows stored at once: beyond some hundred a statement gets longer, but no cheaper.
pub const AUDIT_BATCH: usize = 256;

/// How long the first row of a batch waits for others: nobody looks for a row sooner, and a crash loses no more.
pub const AUDIT_LINGER: Duration = Duration::from_millis(100);

/// Storing one batch; longer than the store's own bound, so that the store answers first and says why.
pub const AUDIT_APPEND: Duration = Duration::from_secs(15);

/// How long the writer waits before it asks a store again that refused: short beside what fills the buffer.
pub const AUDIT_RETRY: Duration = Duration::from_secs(1);

/// Storing what is buffered when a replica stops; with the end of the sessions below what process managers allow.
pub const AUDIT_FLUSH: Duration = Duration::from_secs(5);

/// How long audit rows are kept.
pub const AUDIT_RETENTION: Duration = Duration::from_secs(90 * 24 * 3_600);

/// How often old audit rows are deleted.
pub const AUDIT_FORGET_EVERY: Duration = Duration::from_secs(3_600);

/// Audit rows deleted by one statement: a few milliseconds, so that whoever writes hardly waits.
pub const AUDIT_FORGET_BATCH: u32 = 1_000;

/// The rest between two such statements.
pub const AUDIT_FORGET_PAUSE: Duration = Duration::from_millis(50);

/// What is kept of one text in an audit row; longer than any name of ours.
pub const MAX_AUDIT_TEXT_BYTES: usize = 256;

/// Audit rows of one answer.
pub const MAX_AUDIT_PAGE: u32 = 1_000;

/// Secrets of one request: a server wants one or two, a person has some for each of their services.
pub const MAX_REQUEST_SECRETS: usize = 64;

/// One secret of a request: the longest tokens have some KiB, and servers take no longer header.
pub const MAX_REQUEST_SECRET_BYTES: usize = 16 * 1024;

/// Personal connections of one user, unless the operator says otherwise: a person uses a handful of services.
pub const MAX_PERSONAL_CONNECTIONS: u32 = 20;

/// One definition of a personal connection; the longest sensible ones hold some tokens and a tool list.
pub const MAX_DEFINITION_BYTES: usize = 64 * 1024;

/// Users whose personal connections one replica holds at once; the one that has not asked for longest makes room.
pub const MAX_PERSONAL_USERS: usize = 1_000;

/// How long what is known of a user's personal connections counts as what is stored.
pub const PERSONAL_LOOK: Duration = Duration::from_secs(1);

/// Rows that are re-encrypted between two looks at the store: a page is read and written in well under a second.
pub const RESEAL_PAGE: u32 = 200;

/// How often the other replicas are looked at (durability.md 2.2, declare dead).
pub const PEER_LOOK: Duration = Duration::from_secs(1);

/// How often while a lease is about to end: what a dead replica held is free that much sooner.
pub const PEER_LOOK_SOON: Duration = Duration::from_millis(250);

/// How soon a lease that could not be renewed is asked for again: several times within its margin.
pub const LEASE_RETRY: Duration = Duration::from_secs(1);

/// How long the record of a replica is kept after its end: whatever it held was taken back within seconds.
pub const REPLICA_RETENTION: Duration = Duration::from_secs(24 * 3_600);

/// The longest that a claim of anybody holds: the largest `mcp_tasks.lease_seconds`.
pub const LONGEST_CLAIM: Duration = Duration::from_secs(3_600);

/// How often work on tasks is looked for while nobody says that there is some (architecture.md §10).
pub const TASK_LOOK: Duration = Duration::from_secs(1);

/// How soon it is looked for again when some was due and none was given out: it may be for others.
pub const TASK_LOOK_AGAIN: Duration = Duration::from_millis(250);

/// The longest wait after the store has failed to say what is due.
pub const TASK_STORE_BACKOFF: Duration = Duration::from_secs(5);

/// From when on work that other replicas look after first is everybody's (durability.md 1.2).
pub const TASK_OVERDUE: Duration = Duration::from_secs(2);

/// How long it is tried to store what an attempt brought; after that its claim expires.
pub const TASK_SETTLE: Duration = Duration::from_secs(5);

/// How long whoever works on tasks may take to stop. A store that does not answer must not use up the time in which
/// sessions close and what happened is put on record.
pub const TASK_STOP: Duration = Duration::from_secs(5);

/// The end of it, in which attempts that are still under way are given back. What cannot be given back becomes due when
/// its claim expires.
pub const TASK_GIVE_BACK: Duration = Duration::from_secs(1);

/// Unchanged polls that are stored in one statement: beyond some ten it gets longer, but hardly cheaper (durability.md
/// 1.2).
pub const TASK_BATCH: usize = 64;

/// How long the first of them waits for others: little beside the seconds between two polls.
pub const TASK_LINGER: Duration = Duration::from_millis(20);

/// Attempts at the same time for tasks of one server (durability.md 1.10).
pub const TASKS_PER_SERVER: u32 = 4;

/// How long a session is kept for a task beyond the time at which it was to be asked about next: as long as anybody's
/// claim, so that a store that is away for a while costs no task its session. A task that nobody asks about for longer
/// was deleted.
pub const TASK_SESSION: Duration = LONGEST_CLAIM;

/// How long a task is kept after its end: long enough for whoever comes back from a holiday.
pub const TASK_RETENTION: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Tasks in one answer of a listing (contract 2.3).
pub const MAX_TASK_PAGE: u32 = 100;

/// Events of a task in one answer.
pub const MAX_TASK_EVENTS: u32 = 200;

/// Unfinished tasks of one user: more would be a loop.
pub const TASKS_PER_USER: u32 = 1_000;

/// Cancellations of what could not be stored that go on at the same time; each is one call to a server.
pub const TASK_COMPENSATIONS: usize = 64;

/// Polls of one server in a second, by one replica: more would be an attack.
pub const TASK_POLLS_PER_SECOND: u32 = 500;

/// How soon a task is looked at again whose server has no room for it now.
pub const TASK_NO_ROOM: Duration = Duration::from_millis(250);

/// How often an open stream of a task's events reads the record again: nobody waits longer for an event.
pub const TASK_EVENTS_LOOK: Duration = Duration::from_secs(1);

/// A stream of a task's events ends at this age; its client comes back and misses nothing.
pub const TASK_STREAM_AGE: Duration = Duration::from_secs(3_600);

/// Streams of task events that are open in one replica: each reads the record once a second.
pub const MAX_TASK_STREAMS: usize = 256;

/// Watchers that acknowledge, at one replica: a platform has one or two for each of its own replicas.
pub const MAX_TASK_WATCHERS: usize = 64;

/// Events that a watcher has at most before it has acknowledged one, unless it says another number.
pub const TASK_WATCH_WINDOW: usize = 16;

/// The most that it may say: each holds a claim that is renewed by nobody.
pub const MAX_TASK_WATCH_WINDOW: usize = 256;

/// Acknowledgements that came late and are kept for the next attempt; losing one costs only another attempt.
pub const MAX_LATE_ANSWERS: usize = 1_024;

/// How long a watcher that is let go may take to acknowledge what it has.
pub const TASK_WATCH_LEAVE: Duration = Duration::from_secs(5);

/// How long a replica that is to stop may hand over its sessions (durability.md 2.2, drain): most calls end within it,
/// and with what follows it stays below a minute.
pub const DRAIN: Duration = Duration::from_secs(25);
