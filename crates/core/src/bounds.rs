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

/// Epochs remembered of sessions no longer live, so that a caller is told of the restart.
pub const MAX_REMEMBERED_EPOCHS: usize = 100_000;

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

/// Connections of one replica to PostgreSQL: ten replicas fit the 100 that a server allows by default.
pub const STORE_CONNECTIONS: u32 = 8;

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
