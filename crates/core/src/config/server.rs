//! One server of `mcpServers`, checked and with its environment references resolved (contract 1.2 to 1.7).
//!
//! Owns the form the rest of Caribou reads; what is legal is decided by the readers beside this file. Debug output
//! holds no secret (invariant O3).

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::era::Protocol;
use crate::ids::ServerName;
use crate::masker::Masker;
use crate::task::NativeTasks;

/// A value that must not be printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `value`.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// One server, ready to be connected to.
#[derive(Clone, PartialEq)]
pub struct ServerConfig {
    /// Its key in `mcpServers`; of a personal connection the runtime name.
    pub name: ServerName,
    /// Who brought it.
    pub origin: Origin,
    /// Disabled servers are invisible.
    pub enabled: bool,
    /// How it is reached.
    pub transport: Transport,
    /// For people only.
    pub description: String,
    /// Hints for all its tools.
    pub routing: Routing,
    /// Overrides by raw tool name, in document order.
    pub tools: Vec<(String, ToolOverride)>,
    /// Ours: the OAuth scopes that a caller's token must hold; empty = none.
    pub required_scopes: Arc<[String]>,
    /// Whether visible names start with `<server>_` (contract 5.2).
    pub tool_name_prefix: bool,
    /// Bound of one stdio call; `None` leaves only the replica's own bound.
    pub tool_call_timeout: Option<Duration>,
    /// Ours: the longest silence of one call; each progress report renews it.
    pub tool_call_idle_timeout: Option<Duration>,
    /// Bound of a bring-up; `None` disables it.
    pub session_init_timeout: Option<Duration>,
    /// OAuth of a remote server.
    pub oauth: Option<OAuth>,
    /// Per-user credentials of a remote server.
    pub user_auth: Option<UserAuth>,
    /// Per-request headers of a remote server.
    pub headers_from_context: Option<HeadersFromContext>,
    /// Tools that form durable tasks.
    pub task_toolsets: Vec<TaskToolset>,
    /// Ours: find the era out, or be told.
    pub protocol: Protocol,
    /// Ours: what is made of the tasks of the protocol itself.
    pub native_tasks: NativeTasks,
    /// Ours: the one capability profile declared to this server, an MCP `ClientCapabilities` object; `None` = what we
    /// can answer, see [`ServerConfig::profile`].
    pub client_capabilities: Option<Map<String, Value>>,
    /// Ours: a larger answer is refused, never cut; `None` = the replica's bound.
    pub max_tool_result_bytes: Option<usize>,
    /// Ours: origins, besides its own, that a redirect of this server may lead to.
    pub allowed_redirect_origins: Vec<String>,
    /// Ours: the message URL of an HTTP+SSE server behind a prefix-adding proxy; overrides its `endpoint` event.
    pub message_url: Option<String>,
    /// Hides this server's configured secrets in what it prints.
    pub masker: Masker,
    /// Keys that nothing reads, references resolved: an edit of one counts as an edit of the server.
    pub extra: Map<String, Value>,
}

impl fmt::Debug for ServerConfig {
    /// Names the server only: addresses, arguments and capabilities may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, enabled, transport, .. } = self;
        f.debug_struct("ServerConfig")
            .field("name", name)
            .field("enabled", enabled)
            .field("transport", transport)
            .finish_non_exhaustive()
    }
}

/// Who brought a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The operator, whose addresses are trusted.
    #[default]
    Deployment,
    /// A user, for itself: its addresses are guarded (architecture.md §9, private networks), and what it is called is
    /// told to nobody else.
    Personal {
        /// What its owner calls it.
        connection: Arc<str>,
    },
}

impl ServerConfig {
    /// The name that people read, and that the names of its tools start with (contract 5.2).
    pub fn shown_name(&self) -> &str {
        match &self.origin {
            Origin::Deployment => self.name.as_str(),
            Origin::Personal { connection } => connection,
        }
    }

    /// Whether a user brought it.
    pub fn is_personal(&self) -> bool {
        matches!(self.origin, Origin::Personal { .. })
    }

    /// The routing of one tool by its raw name: the server's, with what the tool's override writes laid over it
    /// (contract 1.3). An override alone does not switch a server on that is off: it must write `mode` itself.
    pub fn routing_of(&self, raw_tool: &str) -> Routing {
        match self.tools.iter().find(|(name, _)| name == raw_tool) {
            Some((_, written)) => self.routing.overlaid(written),
            None => self.routing.clone(),
        }
    }
}

/// How a server is reached (contract 1.10).
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// A child process that speaks over its stdin and stdout.
    Stdio(Stdio),
    /// Streamable HTTP.
    Http(Remote),
    /// HTTP+SSE of 2024-11-05.
    Sse(Remote),
}

impl Transport {
    /// The word of the field `type`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
        }
    }

    /// Whether each session owns a child process.
    pub fn owns_process(&self) -> bool {
        matches!(self, Self::Stdio(_))
    }
}

/// A child process.
#[derive(Clone, Default, PartialEq)]
pub struct Stdio {
    /// The program: a name found on `PATH`, or a path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables set on top of the safe list, in document order.
    pub env: Vec<(String, Secret)>,
    /// Working directory, absolute; `None` = the thread's own folder.
    pub cwd: Option<PathBuf>,
    /// Ours: variables that name a file or folder inside the thread's own folder, as a relative path. For servers
    /// that keep their state in a file: each thread gets its own.
    pub thread_files: Vec<(String, PathBuf)>,
}

impl fmt::Debug for Stdio {
    /// Names the variables only: some servers take their key as an argument.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio").field("env", &self.env).finish_non_exhaustive()
    }
}

/// A remote server.
#[derive(Clone, PartialEq)]
pub struct Remote {
    /// Where it answers.
    pub url: String,
    /// Static headers, in document order.
    pub headers: Vec<(String, Secret)>,
}

impl fmt::Debug for Remote {
    /// Leaves the address out: its login, path or query may be a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("headers", &self.headers).finish_non_exhaustive()
    }
}

/// Whether a tool should be preferred, and for what (contract 1.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routing {
    /// `off` emits no hint.
    pub mode: RoutingMode,
    /// 0 to 100.
    pub priority: u8,
    /// Words of a request this tool is good for.
    pub keywords: Vec<String>,
}

impl Routing {
    /// This routing with what `written` names replaced.
    pub(super) fn overlaid(&self, written: &ToolOverride) -> Self {
        Self {
            mode: written.mode.unwrap_or(self.mode),
            priority: written.priority.unwrap_or(self.priority),
            keywords: written.keywords.clone().unwrap_or_else(|| self.keywords.clone()),
        }
    }
}

/// The field `routing.mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoutingMode {
    /// No hint.
    #[default]
    Off,
    /// Prefer this tool.
    Prefer,
}

/// What `tools.<raw name>` says; absent fields fall back to the server's (contract 1.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOverride {
    /// `routing.mode`, if written.
    pub mode: Option<RoutingMode>,
    /// `routing.priority`, if written.
    pub priority: Option<u8>,
    /// `routing.keywords`, if written.
    pub keywords: Option<Vec<String>>,
    /// Ours: the OAuth scopes that a call of it requires in place of the server's, if written.
    pub required_scopes: Option<Arc<[String]>>,
}

/// Three or four raw tools that together form one kind of durable task (contract 1.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskToolset {
    /// Its name towards callers.
    pub name: String,
    /// Starts a task.
    pub submit_tool: String,
    /// Asks for its state.
    pub status_tool: String,
    /// Cancels it.
    pub cancel_tool: String,
    /// Answers its questions, if the server has such a tool.
    pub input_tool: Option<String>,
}

/// The field `oauth` (contract 1.5). Without `Debug`: its address and client id may be secret too.
#[derive(Clone, PartialEq)]
pub struct OAuth {
    /// Whether it is in force.
    pub enabled: bool,
    /// The token endpoint.
    pub token_url: String,
    /// How a token is asked for.
    pub grant: OAuthGrant,
    /// Client id.
    pub client_id: Option<String>,
    /// Client secret.
    pub client_secret: Option<Secret>,
    /// Refresh token the chain starts from.
    pub refresh_token: Option<Secret>,
    /// Scope asked for.
    pub scope: Option<String>,
    /// Audience asked for.
    pub audience: Option<String>,
    /// Name of the access token in the answer.
    pub token_field: String,
    /// Name of the token type in the answer.
    pub token_type_field: String,
    /// Name of the life time in the answer.
    pub expires_in_field: String,
    /// Type when the answer names none.
    pub default_token_type: String,
    /// A token this close to its end counts as expiring.
    pub refresh_skew: Duration,
    /// Further form fields.
    pub extra_token_params: Vec<(String, Secret)>,
    /// How long the provider takes a refresh token again that it has just rotated; zero = it does not.
    pub reuse_leeway: Duration,
    /// What is done when nobody knows whether a refresh token was spent.
    pub unknown_outcome: UnknownOutcome,
    /// How the client proves to the endpoint who it is.
    pub authentication: ClientAuthentication,
}

/// The field `oauth.token_endpoint_auth_method` (RFC 6749 §2.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAuthentication {
    /// `client_secret_post`: id and secret are fields of the form.
    #[default]
    SecretPost,
    /// `client_secret_basic`: both are the credentials of HTTP Basic, and none stands in the form.
    SecretBasic,
}

/// The field `oauth.unknown_outcome`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownOutcome {
    /// `probe_once`: present the token once more when the request is surely over.
    #[default]
    ProbeOnce,
    /// `reauth`: never again; a person configures another one.
    Reauth,
}

/// The field `oauth.grant_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OAuthGrant {
    /// `client_credentials`.
    #[default]
    ClientCredentials,
    /// `refresh_token`.
    RefreshToken,
}

impl OAuthGrant {
    /// Its word, in the configuration and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClientCredentials => "client_credentials",
            Self::RefreshToken => "refresh_token",
        }
    }
}

/// The field `user_auth` (contract 1.6).
#[derive(Clone, Debug, PartialEq)]
pub struct UserAuth {
    /// Whether it is in force.
    pub enabled: bool,
    /// The header the value goes into.
    pub header: String,
    /// Whole header values by user id.
    pub users: Vec<(String, Secret)>,
    /// What happens to a user without a value.
    pub on_missing: OnMissing,
}

/// The field `headers_from_context` (contract 1.7).
#[derive(Clone, Debug, PartialEq)]
pub struct HeadersFromContext {
    /// Whether it is in force.
    pub enabled: bool,
    /// Header name to key of the request's secrets.
    pub headers: Vec<(String, String)>,
    /// What happens when the request lacks a key.
    pub on_missing: OnMissing,
}

/// The field `on_missing`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMissing {
    /// Refuse the call before any traffic.
    #[default]
    Deny,
    /// Go on without the header.
    Passthrough,
}

/// One key of `mcpServers`: a server, or why it is left out. One bad server never takes the others along.
#[derive(Clone, Debug)]
pub struct ServerEntry {
    /// The key.
    pub name: ServerName,
    /// The server, or the reason it was dropped (holds no secret).
    pub config: Result<std::sync::Arc<ServerConfig>, String>,
}
