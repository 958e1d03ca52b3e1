//! Interceptors of the operator: built in, over gRPC, over HTTP (contract 8.6, architecture.md §2).
//!
//! Owns how an entry of `mcpInterceptors` becomes something that can be asked, how long that may take, and when it is
//! no longer asked. Does not own the order of a chain nor what becomes of an answer: that is the runtime's, and so is
//! the check of headers. An interceptor that cannot be asked is an error, never a silent yes: the call fails.
//!
//! * `builtin:NAME` is made by a [`Registry`]; a program that embeds Caribou registers its own with [`Registry::with`].
//!   Shipped: `builtin:request-id` sets `X-Request-Id`.
//! * `grpc://host:port` and `grpcs://host:port` (TLS, trusted by the public authorities and those of
//!   [`Registry::trusting`]) implement the service `caribou.v1.Interceptor` of `proto/caribou/v1/interceptor.proto`.
//! * `http://…` and `https://…` answer `POST <address>/before` and `POST <address>/after` with JSON. A login in the
//!   address is sent as basic authentication. The status must be 200; redirects are not followed.
//!
//! # The JSON of an HTTP interceptor
//!
//! Same members as the messages of the gRPC service, but what is JSON there as text stands here as JSON. Members that
//! are not known are ignored, those without a value are absent.
//!
//! `POST <address>/before` is sent
//!
//! ```json
//! {"call": {
//!   "server": "github", "tool": "search", "visible_tool": "github_search",
//!   "user_id": "ann", "thread_id": "t1", "run_id": "r1", "tool_call_id": "c1", "request_id": "7f…",
//!   "arguments": {"q": "x"},
//!   "headers": [{"name": "X-Tenant", "value": "7"}],
//!   "secrets": {"key_listed_by_the_entry": "…"}
//! }}
//! ```
//!
//! and answers with exactly one of
//!
//! ```json
//! {"proceed": {"arguments": {"q": "y"}, "headers": [{"name": "X-Tenant", "value": "8", "per_call": false}]}}
//! {"answer": {"content": [{"type": "text", "text": "from a cache"}]}}
//! {"deny": "not on Sundays"}
//! ```
//!
//! `{"proceed": {}}` lets the call pass as it is. `answer` is a `CallToolResult`; nothing is sent to the server then.
//! A header counts as a credential, and calls share an upstream session only when theirs are equal, unless `per_call`
//! says that it tells nothing about who calls.
//!
//! `POST <address>/after` is sent `{"call": …, "result": {…}}`, the call as it was shown before, and answers with
//! `{"result": {…}}`, or with `{}` to leave the result as it is.
//!
//! # Bounds
//!
//! An answer takes at most the entry's `timeout_seconds` (5 unless it says so) and 16 MiB. After five failures in a
//! row the interceptor is left alone for five seconds, in which calls fail at once; then one call finds out whether it
//! is back.

mod breaker;
mod builtin;
mod callout;
mod grpc;
mod http;
mod registry;

pub use registry::{Constructor, NoHttpClient, Registry};
