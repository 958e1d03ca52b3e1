//! Sinks of task events: a signed webhook, and the log (contract 6.9, architecture.md §2 "task events").
//!
//! Owns the words of each receiver and what its answers mean. Does not own when it is told, how often, or what becomes
//! of an answer: that is decided by `caribou-core` and driven by the runtime. A receiver that fails, hangs or answers
//! without sense is an answer like any other; nothing is repeated here.
//!
//! # The webhook
//!
//! `POST <url>` with JSON, signed as Standard Webhooks says (<https://www.standardwebhooks.com>): `webhook-id` is the
//! idempotency key, `webhook-timestamp` the time of sending, and `webhook-signature` holds one `v1` signature for each
//! secret, so that secrets can be changed without a gap. Whoever has seen the id before answers as it did then, with the
//! run it launched then: ids stay the same until a run is known to have failed.
//!
//! ```json
//! {
//!   "type": "mcp_task.event",
//!   "timestamp": "2026-11-30T07:00:00.000000Z",
//!   "data": {
//!     "user_id": "ann", "thread_id": "t1", "server": "jobs", "run_id": "r1",
//!     "mcp_task_notification": {"task_id": "mcp-task-…", "dispatch_version": 3, "dispatch_attempt": 0},
//!     "event": {"task_id": "mcp-task-…", "task_name": "report", "status": "completed", "result": {}},
//!     "agent_message": "…"
//!   }
//! }
//! ```
//!
//! `event` is what was recorded, byte for byte. `agent_message` is made for a model: a fixed instruction, and the event
//! between markers that nothing in it can imitate.
//!
//! | answer | means |
//! | --- | --- |
//! | 202 with `{"run_id": "…"}` | launched; looked up at `look_up_url` until it ends. Without such a URL: delivered |
//! | 2xx | delivered |
//! | 409 | the thread is busy: told again later, which does not count as a failure |
//! | 404, 410 | the thread is gone: given up |
//! | 400, 401, 403, 422, 501 | refused for good: given up |
//! | 408, 429, 5xx, no answer, no connection | nobody knows: told again under the same id, without end |
//! | 3xx (redirects are not followed), other 4xx | not taken: told again, given up after five failures |
//!
//! `GET <look_up_url>` (signed too, over an empty body, under the same id) answers `{"status": "…"}`: `pending`,
//! `queued`, `running` go on; `success`, `succeeded`, `completed` have succeeded; `error`, `failed`, `timeout`,
//! `interrupted`, `cancelled` have failed, and the event is told again under a new id; 404 and 410 mean that there is no
//! such run.
//!
//! # A refresh token that is of no use any more
//!
//! Once for each chain that ends until a person signs in again, under an id of its own, signed like the others. Taken by
//! any 2xx; after 400, 401, 403, 404, 410, 422 and 501 given up; else told again for about two minutes:
//!
//! ```json
//! {
//!   "type": "mcp_oauth.reauth_needed",
//!   "data": {"server": "mail", "generation": 12, "reason": "…"}
//! }
//! ```

mod log;
mod look_up;
mod payload;
mod receiver;
mod signature;
mod timestamp;
mod webhook;

pub use log::LogSink;
pub use look_up::{LookUpUrl, NotALookUpUrl};
pub use signature::{NotASecret, WebhookSecret};
pub use webhook::{NoWebhook, NotAWebhookUrl, Webhook, WebhookOptions, WebhookUrl};
