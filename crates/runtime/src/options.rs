//! The runtime's settings, with the defaults of `core/bounds`.

use std::time::Duration;

use caribou_core::bounds;
use caribou_core::config::InterceptorEntry;
use caribou_core::guardrails::Guardrails;
use caribou_core::holding::LeaseProfile;
use caribou_core::identity::Rate;
use caribou_core::task::TaskLimits;
use caribou_core::tool::AUTO_PROMOTE_TOP_K;

use crate::audit::AuditOptions;

/// Bounds and waits of one replica.
#[derive(Clone, Debug)]
pub struct Options {
    /// Sessions that own a child, those being created counted.
    pub max_live_sessions: usize,
    /// Sessions with remote servers.
    pub max_remote_sessions: usize,
    /// Calls in flight in one session; more are refused as busy at once.
    pub max_calls_per_session: usize,
    /// Calls in flight in this replica.
    pub max_calls: usize,
    /// A session nobody called for this long is closed.
    pub session_idle: Duration,
    /// Children being brought up at once; others queue within their bring-up bound.
    pub max_spawns: usize,
    /// Bound of a call to a remote server that sets none.
    pub http_call_timeout: Duration,
    /// Bound of every call.
    pub call_max: Duration,
    /// How long a listing waits for servers still being discovered.
    pub list_wait: Duration,
    /// Which tools may be called at all.
    pub guardrails: Guardrails,
    /// What stands around every call, in order, where no configuration is followed; where one is, its document says.
    pub interceptors: Vec<InterceptorEntry>,
    /// Whether tools are deferred: shown by name until a model fetches them (contract 9.3).
    pub tool_search: bool,
    /// The most tools that one text of a user promotes.
    pub auto_promote_top_k: usize,
    /// How what is done is put on record.
    pub audit: AuditOptions,
    /// How often each caller may ask; `None` = as often as it likes.
    pub rate_limit: Option<Rate>,
    /// How durable tasks are followed, where there is a store for them.
    pub tasks: TaskLimits,
    /// How long a task is kept after its end.
    pub task_retention: Duration,
    /// The times of the cluster's leases; the same for all its replicas.
    pub cluster: LeaseProfile,
}

impl Default for Options {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            max_live_sessions: bounds::MAX_LIVE_SESSIONS,
            max_remote_sessions: bounds::MAX_REMOTE_SESSIONS,
            max_calls_per_session: bounds::MAX_CALLS_PER_SESSION,
            max_calls: bounds::MAX_CALLS,
            session_idle: bounds::SESSION_IDLE,
            // A Python server costs half a second of CPU to start: more at once only makes all of them late.
            max_spawns: cores * 2,
            http_call_timeout: bounds::HTTP_CALL,
            call_max: bounds::CALL_MAX,
            list_wait: bounds::LIST_WAIT,
            guardrails: Guardrails::default(),
            interceptors: Vec::new(),
            tool_search: false,
            auto_promote_top_k: AUTO_PROMOTE_TOP_K,
            audit: AuditOptions::default(),
            rate_limit: None,
            tasks: TaskLimits::default(),
            task_retention: bounds::TASK_RETENTION,
            cluster: LeaseProfile::SAFE,
        }
    }
}
