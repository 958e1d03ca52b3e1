//! What can be set, its default and its bounds. The doc comments are the descriptions of the published schema.
//!
//! Bounds of the runtime come from `caribou_core::bounds`, which holds the reason for each number.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::tool::auto_promote_top_k;
use caribou_store::Location;
use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Audit, Auth, Cluster, Console, DatabaseUrl, Deployment, Grpc, Guardrails, Interceptors, McpEndpoint, Network,
    Personal, Shutdown, Threads, Tls, ToolSearch,
};
use super::{Backend, Config, Database, McpTasks, Redis, TelemetrySettings};

/// The port of `listen` when nothing else is said.
const DEFAULT_PORT: u16 = 8750;

/// A year: no wait of ours is meant to be longer, and every number of seconds below it fits a clock.
const LONGEST_SECONDS: f64 = 31_536_000.0;

/// A millisecond, the resolution of our timers.
const SHORTEST_SECONDS: f64 = 0.001;

/// Settings of one Caribou replica. Every one can also be given as an environment variable: `CARIBOU_` and its path
/// in capitals with underscores, such as `CARIBOU_SESSIONS_MAX_LIVE`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Address and port that REST is served on. Port 0 takes a free one. With `auth.mode: disabled` only
    /// loopback addresses are accepted.
    #[garde(skip)]
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// Folder for what Caribou keeps on disk: its database, and the working folders of threads. A relative path in a
    /// file counts from that file's folder.
    #[garde(skip)]
    pub data_dir: PathBuf,
    /// The database: `postgres://user@host/database` or `sqlite:/path/caribou.db`. When absent: the SQLite file
    /// `caribou.db` in `data_dir`. It may hold a password, which is never printed.
    #[garde(skip)]
    pub database_url: Option<DatabaseUrl>,
    /// The file that names the MCP servers. When absent it is searched for: `extensions_config.json`, then
    /// `mcp_config.json`, in the project's folder.
    #[garde(skip)]
    pub extensions_config_path: Option<PathBuf>,
    /// Where the document that names the MCP servers is kept.
    #[garde(dive)]
    pub config: Config,
    /// A Redis, by which replicas hear of resets at once.
    #[garde(dive)]
    pub redis: Redis,
    /// Who may call, and how often.
    #[garde(dive)]
    pub auth: Auth,
    /// Sessions with upstream servers.
    #[garde(dive)]
    pub sessions: Sessions,
    /// Tool calls.
    #[garde(dive)]
    pub calls: Calls,
    /// Child processes.
    #[garde(dive)]
    pub stdio: Stdio,
    /// The files of threads.
    #[garde(dive)]
    pub threads: Threads,
    /// The Model Context Protocol.
    #[garde(dive)]
    pub protocol: Protocol,
    /// The list of tools.
    #[garde(dive)]
    pub catalog: Catalog,
    /// Deferred tools: models see their names and fetch the schemas of those they need.
    #[garde(dive)]
    pub tool_search: ToolSearch,
    /// Which tools may be called at all, whoever asks.
    #[garde(dive)]
    pub guardrails: Guardrails,
    /// Interceptors around tool calls, which `mcpInterceptors` of the servers' file lists.
    #[garde(dive)]
    pub interceptors: Interceptors,
    /// Who did what, on record.
    #[garde(dive)]
    pub audit: Audit,
    /// What is logged, on stderr.
    #[garde(dive)]
    pub log: Log,
    /// What is exported over OTLP.
    #[garde(dive)]
    pub telemetry: TelemetrySettings,
    /// The REST interface.
    #[garde(dive)]
    pub rest: Rest,
    /// The web console.
    #[garde(dive)]
    pub console: Console,
    /// Caribou as one MCP server.
    #[garde(dive)]
    pub mcp_endpoint: McpEndpoint,
    /// The gRPC interface.
    #[garde(dive)]
    pub grpc: Grpc,
    /// How callers' connections are encrypted.
    #[garde(dive)]
    pub tls: Tls,
    /// How requests to servers, token endpoints, HTTP interceptors and issuers of keys leave.
    #[garde(dive)]
    pub network: Network,
    /// The servers that users bring for themselves.
    #[garde(dive)]
    pub personal: Personal,
    /// How Caribou is deployed.
    #[garde(dive)]
    pub deployment: Deployment,
    /// Replicas that share a database.
    #[garde(dive)]
    pub cluster: Cluster,
    /// How a replica ends.
    #[garde(dive)]
    pub shutdown: Shutdown,
    /// The kind of database.
    #[garde(dive)]
    pub database: Database,
    /// Durable tasks.
    #[garde(dive)]
    pub mcp_tasks: McpTasks,
}

/// Sessions with upstream servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Sessions {
    /// Sessions that own a child process, those being created counted. When all are taken, the one idle for longest
    /// is closed.
    #[garde(range(min = 1, max = 100_000))]
    pub max_live: usize,
    /// Sessions with remote servers.
    #[garde(range(min = 1, max = 1_000_000))]
    pub max_remote: usize,
    /// Calls in flight in one session; more are refused as `busy`.
    #[garde(range(min = 1, max = 100_000))]
    pub max_calls_per_session: usize,
    /// A session nobody called for this many seconds is closed.
    #[garde(range(min = SHORTEST_SECONDS, max = LONGEST_SECONDS))]
    pub idle_seconds: f64,
    /// Child processes being brought up at once; the others queue. When absent: twice the number of cores.
    #[garde(range(min = 1, max = 10_000))]
    pub max_spawns: Option<usize>,
}

/// Tool calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Calls {
    /// Calls in flight over all sessions; more are refused as `busy`.
    #[garde(range(min = 1, max = 1_000_000))]
    pub max_in_flight: usize,
    /// The longest any call may take, whoever asks.
    #[garde(range(min = SHORTEST_SECONDS, max = LONGEST_SECONDS))]
    pub max_seconds: f64,
    /// The longest call to a remote server that sets no bound of its own.
    #[garde(range(min = SHORTEST_SECONDS, max = LONGEST_SECONDS))]
    pub http_timeout_seconds: f64,
    /// How long a listing waits for servers still being discovered; the others are served meanwhile.
    #[garde(range(min = 0.0, max = LONGEST_SECONDS))]
    pub list_wait_seconds: f64,
}

/// Child processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Stdio {
    /// Environment variables handed to every child beside HOME, LOGNAME, PATH, SHELL, TERM, USER and the locale. As
    /// one environment variable: names separated by commas.
    #[garde(inner(length(min = 1)))]
    pub inherit_env: Vec<String>,
    /// How long a child may take to leave after its stdin was closed, and again after SIGTERM.
    #[garde(range(min = 0.0, max = LONGEST_SECONDS))]
    pub grace_seconds: f64,
}

/// The Model Context Protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Protocol {
    /// How long a stdio server may take to answer whether it speaks the revision of 2026; afterwards it counts as an
    /// older one.
    #[garde(range(min = SHORTEST_SECONDS, max = LONGEST_SECONDS))]
    pub probe_seconds: f64,
}

/// The list of tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Catalog {
    /// Ask all servers for their tools when Caribou starts, not only when somebody first asks for them.
    #[garde(skip)]
    pub discover_at_start: bool,
}

/// What is logged, on stderr.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// Lines for people, or one JSON object a line.
    #[garde(skip)]
    pub format: LogFormat,
    /// `error`, `warn`, `info`, `debug`, `trace`, or directives such as `info,caribou_mcp=debug`. The variable
    /// `RUST_LOG` wins when it is set.
    #[garde(custom(directives))]
    pub level: String,
}

/// Who reads the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A person.
    #[default]
    Human,
    /// A program.
    Json,
}

/// The REST interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Rest {
    /// The largest request body, in bytes.
    #[garde(range(min = 1_024, max = 1_073_741_824))]
    pub max_body_bytes: usize,
    /// Hosts, besides loopback, that the header `Origin` of a request may name, and `Host` with `auth.mode: disabled`:
    /// those of web pages of your own, and of a tunnel or sidecar in front of Caribou. As one environment variable: names separated by commas.
    #[garde(inner(length(min = 1)))]
    pub allowed_hosts: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)),
            data_dir: PathBuf::from(".caribou"),
            database_url: None,
            extensions_config_path: None,
            config: Config::default(),
            redis: Redis::default(),
            auth: Auth::default(),
            sessions: Sessions::default(),
            calls: Calls::default(),
            stdio: Stdio::default(),
            threads: Threads::default(),
            protocol: Protocol::default(),
            catalog: Catalog::default(),
            tool_search: ToolSearch::default(),
            guardrails: Guardrails::default(),
            interceptors: Interceptors::default(),
            audit: Audit::default(),
            log: Log::default(),
            telemetry: TelemetrySettings::default(),
            rest: Rest::default(),
            console: Console::default(),
            mcp_endpoint: McpEndpoint::default(),
            grpc: Grpc::default(),
            tls: Tls::default(),
            network: Network::default(),
            personal: Personal::default(),
            deployment: Deployment::default(),
            cluster: Cluster::default(),
            shutdown: Shutdown::default(),
            database: Database::default(),
            mcp_tasks: McpTasks::default(),
        }
    }
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            max_live: bounds::MAX_LIVE_SESSIONS,
            max_remote: bounds::MAX_REMOTE_SESSIONS,
            max_calls_per_session: bounds::MAX_CALLS_PER_SESSION,
            idle_seconds: bounds::SESSION_IDLE.as_secs_f64(),
            max_spawns: None,
        }
    }
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            max_in_flight: bounds::MAX_CALLS,
            max_seconds: bounds::CALL_MAX.as_secs_f64(),
            http_timeout_seconds: bounds::HTTP_CALL.as_secs_f64(),
            list_wait_seconds: bounds::LIST_WAIT.as_secs_f64(),
        }
    }
}

impl Default for Stdio {
    fn default() -> Self {
        Self { inherit_env: Vec::new(), grace_seconds: bounds::CHILD_GRACE.as_secs_f64() }
    }
}

impl Default for Protocol {
    fn default() -> Self {
        Self { probe_seconds: bounds::ERA_PROBE.as_secs_f64() }
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self { discover_at_start: true }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::Human, level: "info".to_owned() }
    }
}

impl Default for Rest {
    fn default() -> Self {
        Self { max_body_bytes: bounds::MAX_MESSAGE_BYTES, allowed_hosts: Vec::new() }
    }
}

impl Settings {
    /// Whether the database is of the kind that `database.backend` names, if it names one.
    ///
    /// # Errors
    /// It is of another kind.
    pub fn demand_backend(&self) -> anyhow::Result<()> {
        let named = match self.database_location() {
            Location::Postgres(_) => Backend::Postgres,
            Location::Sqlite(_) => Backend::Sqlite,
        };
        match self.database.backend {
            Some(backend) if backend != named => {
                anyhow::bail!("`database.backend` names another kind of database than `database_url`")
            }
            _ => Ok(()),
        }
    }

    /// Whether anything outlives this process.
    pub fn has_database(&self) -> bool {
        self.database.backend != Some(Backend::Memory)
    }

    /// Where the database is.
    pub fn database_location(&self) -> Location {
        let embedded = || Location::Sqlite(self.data_dir.join("caribou.db"));
        self.database_url.as_ref().map_or_else(embedded, |url| url.location().clone())
    }

    /// What the runtime is told.
    pub fn runtime_options(&self) -> caribou_runtime::Options {
        let defaults = caribou_runtime::Options::default();
        caribou_runtime::Options {
            max_live_sessions: self.sessions.max_live,
            max_remote_sessions: self.sessions.max_remote,
            max_calls_per_session: self.sessions.max_calls_per_session,
            session_idle: Duration::from_secs_f64(self.sessions.idle_seconds),
            max_spawns: self.sessions.max_spawns.unwrap_or(defaults.max_spawns),
            max_calls: self.calls.max_in_flight,
            call_max: Duration::from_secs_f64(self.calls.max_seconds),
            http_call_timeout: Duration::from_secs_f64(self.calls.http_timeout_seconds),
            list_wait: Duration::from_secs_f64(self.calls.list_wait_seconds),
            guardrails: self.guardrails.rule().0,
            // The document that is followed says.
            interceptors: Vec::new(),
            tool_search: self.tool_search.enabled,
            auto_promote_top_k: auto_promote_top_k(self.tool_search.auto_promote_top_k),
            audit: self.audit.options(),
            rate_limit: self.auth.rate_limit.rate(),
            tasks: self.mcp_tasks.limits(),
            task_retention: self.mcp_tasks.retention(),
            cluster: self.cluster.leases(),
        }
    }
}

fn directives(text: &str, _: &()) -> garde::Result {
    match tracing_subscriber::EnvFilter::try_new(text) {
        Ok(_) => Ok(()),
        Err(_) => Err(garde::Error::new("not a log level")),
    }
}
