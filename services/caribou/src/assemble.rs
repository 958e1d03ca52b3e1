//! Puts a replica together: the only place that names both who asks the runtime and whom the runtime asks.
//!
//! Owns the order in which the parts come up and go down, and nothing they decide. A part that cannot come up ends
//! the start; a server that is configured wrongly is told loudly and left out.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use caribou_core::config::{self, Document, Source};
use caribou_core::ids::BootId;
use caribou_core::launch::Allowlist;
use caribou_egress::WayOut;
use caribou_grpc::GrpcOptions;
use caribou_identity::{ApiKeyCallers, JwtCallers};
use caribou_interceptors::Registry;
use caribou_mcp::{UpstreamOptions, Upstreams};
use caribou_oauth::TokenEndpoints;
use caribou_ports::config_source::ConfigSource as _;
use caribou_ports::identity::Authenticator;
use caribou_ports::store::{self, Audit, Promotions, Replicas as _};
use caribou_rest::RestOptions;
use caribou_runtime::{Configuration, Outside, Runtime};
use caribou_store::SqlStore;
use caribou_workspace::{ConfigFile, FoldersBelow, FoundText, Lookup};

use crate::alone;
use crate::credentials;
use crate::guard::{Guard, GuardOptions};
use crate::settings::{AuthMode, Loaded, Settings};
use crate::telemetry::Metrics;
use crate::{tasks, tls};

/// One replica of this process.
pub(crate) struct Replica {
    /// Its verbs.
    pub(crate) runtime: Runtime,
    /// Kept so that the children live as long as the replica does.
    guard: Arc<Guard>,
    /// What outlives this process; `None` when nothing needs to.
    store: Option<SqlStore>,
    /// Held to the end: proves to the next process that this one is gone.
    _lock: Option<File>,
    /// Set as soon as the end begins, so that balancers look elsewhere.
    pub(crate) stopping: Arc<AtomicBool>,
}

/// The settings, or one error that holds everything that is wrong with them.
///
/// # Errors
/// When there is a problem at all.
pub(crate) fn accept(loaded: Loaded) -> anyhow::Result<Settings> {
    let Loaded { settings, problems } = loaded;
    if problems.is_empty() { Ok(settings) } else { Err(refused("the settings are wrong", &problems)) }
}

/// The file that names the servers, or `None` when there is none.
///
/// # Errors
/// When it was named and does not exist, or cannot be read.
pub(crate) fn find_servers(settings: &Settings) -> anyhow::Result<Option<FoundText>> {
    let cwd = std::env::current_dir().context("the working directory is gone")?;
    let lookup = Lookup { argument: settings.extensions_config_path.as_deref(), env: &variable, cwd: &cwd };
    match caribou_workspace::find(&lookup)? {
        Some(found) => Ok(Some(caribou_workspace::read(found)?)),
        None => Ok(None),
    }
}

/// What a document of servers says.
///
/// # Errors
/// All its problems, when it cannot be used at all.
pub(crate) fn understand(settings: &Settings, source: &Source<'_>) -> Result<Document, Vec<config::Problem>> {
    config::parse(source, &variable)?.accept(settings.interceptors.unsupported.into())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The servers that the settings lead to, with the file to follow and to change. A file that is searched for and not there may come later, by hand or by the first change.
///
/// # Errors
/// When the file was named and does not exist, or it cannot be read, or cannot be used at all.
pub(crate) async fn follow_servers(settings: &Settings) -> anyhow::Result<Configuration> {
    let cwd = std::env::current_dir().context("the working directory is gone")?;
    let named = settings.extensions_config_path.as_deref();
    caribou_workspace::find(&Lookup { argument: named, env: &variable, cwd: &cwd })?;
    let file = ConfigFile::new(named.map(Into::into), Arc::new(variable), cwd);
    let document = match file.load().await? {
        Some(text) => understand(settings, &Source { file: &text.file, text: &text.text })
            .map_err(|problems| refused("the servers' configuration cannot be used", &problems))?,
        None => {
            tracing::warn!("no file names any servers; `caribou config init` writes one");
            Document::default()
        }
    };
    Ok(Configuration {
        file: file.place(),
        source: Arc::new(file),
        variables: Arc::new(variable),
        document,
        allowlist: Allowlist::from_env(&variable),
        unsupported: settings.interceptors.unsupported.into(),
    })
}

fn refused(what: &str, problems: &[impl std::fmt::Display]) -> anyhow::Error {
    let lines: Vec<_> = problems.iter().map(|problem| format!("\n  {problem}")).collect();
    anyhow::anyhow!("{what}:{}", lines.concat())
}

/// The database of a replica that serves, fit for this version.
///
/// # Errors
/// When it cannot be reached, or waits for `caribou migrate`, or was made by a newer version.
pub(crate) async fn open_store(settings: &Settings) -> anyhow::Result<SqlStore> {
    settings.demand_backend()?;
    let store = SqlStore::open(&settings.database_location()).await?;
    store.make_ready().await?;
    Ok(store)
}

/// Makes the interceptors that the servers' file lists; they are trusted and reached as servers are.
///
/// # Errors
/// The file of certificates is wrong, or there is no HTTP client.
fn interceptors(settings: &Settings, way_out: &WayOut) -> anyhow::Result<Registry> {
    let registry = Registry::over(way_out.lead(reqwest::Client::builder()))?;
    Ok(match &settings.network.ca_file {
        Some(file) => registry.trusting(tls::read_authorities("network.ca_file", file)?),
        None => registry,
    })
}

/// Who tells callers apart; `None` = nobody does.
///
/// # Errors
/// The keys of tokens cannot be used.
async fn authenticator(
    settings: &Settings,
    store: Option<&SqlStore>,
    way_out: &WayOut,
) -> anyhow::Result<Option<Arc<dyn Authenticator>>> {
    match settings.auth.mode {
        AuthMode::Disabled => Ok(None),
        AuthMode::ApiKeys => {
            let store = store.context("`auth.mode: api_keys` needs the database that holds the keys")?;
            Ok(Some(Arc::new(ApiKeyCallers::new(Arc::new(store.clone())))))
        }
        AuthMode::Jwt => {
            let (source, rules) =
                settings.auth.jwt.rules().context("`auth.mode: jwt` needs the settings `auth.jwt`")?;
            let client = way_out.lead(reqwest::Client::builder());
            Ok(Some(Arc::new(JwtCallers::start(source, rules, client).await?)))
        }
    }
}

/// This life of this replica, for the record.
fn on_record(boot: &BootId) -> store::Replica {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    store::Replica { boot: boot.clone(), host, version: env!("CARGO_PKG_VERSION").to_owned() }
}

impl Replica {
    /// Starts the guard, the connections to servers and the runtime. Metrics must be set up before. Without a store
    /// nothing is recorded, and what threads promote is forgotten at the end.
    ///
    /// # Errors
    /// When one of them cannot start.
    pub(crate) async fn start(
        settings: &Settings,
        configuration: Configuration,
        store: Option<SqlStore>,
    ) -> anyhow::Result<Self> {
        let boot = BootId::new(uuid::Uuid::now_v7().to_string());
        let program = std::env::current_exe().context("the path of this program is unknown")?;
        let guard = Guard::start(GuardOptions { program, boot: boot.clone() }).context("the guard does not start")?;
        let way_out = tls::way_out(&settings.network)?;
        let upstreams = Upstreams::new(
            UpstreamOptions {
                inherit_env: settings.stdio.inherit_env.clone(),
                child_grace: Duration::from_secs_f64(settings.stdio.grace_seconds),
                era_probe: Duration::from_secs_f64(settings.protocol.probe_seconds),
                way_out: way_out.clone(),
                allowed_networks: settings.network.allowed(),
                ..UpstreamOptions::new(boot.clone())
            },
            guard.clone(),
        )?;
        let guarded = caribou_egress::Guard::new(settings.network.allowed());
        let root = std::path::absolute(settings.threads.root(&settings.data_dir))?;
        let folders = FoldersBelow::new(root, settings.threads.virtual_prefix.clone());
        let mut lock = None;
        if let Some(store) = &store {
            lock = alone::take_over(store, &settings.database_location()).await?;
            store.begin(on_record(&boot)).await?;
        }
        let promotions = store.clone().map(|store| Arc::new(store) as Arc<dyn Promotions>);
        let authenticator = authenticator(settings, store.as_ref(), &way_out).await?;
        let audit = store.clone().filter(|_| settings.audit.enabled).map(|store| Arc::new(store) as Arc<dyn Audit>);
        let personal = credentials::personal(settings, store.as_ref(), &configuration.allowlist).await?;
        let oauth_chains = credentials::oauth_chains(settings, store.as_ref()).await?;
        let servers = configuration.document.servers.clone();
        let configuration = Some(configuration);
        let outside = Outside {
            folders: Some(Arc::new(folders)),
            configuration,
            promotions,
            authenticator,
            audit,
            token_endpoint: Some(TokenEndpoints::new(guarded, &way_out)?),
            oauth_chains,
            interceptors: Some(Arc::new(interceptors(settings, &way_out)?)),
            personal,
            tasks: tasks::durable(settings, store.as_ref(), &way_out)?,
            ..Outside::from(upstreams)
        };
        if let (_, Some(why)) = settings.guardrails.rule() {
            let verdict = if settings.guardrails.fail_closed { "every call is denied" } else { "no call is judged" };
            tracing::warn!("{verdict}: {why}");
        }
        let runtime = Runtime::start(servers, settings.runtime_options(), outside, boot).await?;
        if settings.catalog.discover_at_start {
            runtime.discover_in_background();
        }
        Ok(Self { runtime, guard, store, _lock: lock, stopping: Arc::default() })
    }

    /// The routes over this replica's verbs.
    pub(crate) fn router(&self, settings: &Settings, metrics: Metrics) -> Router {
        let stopping = self.stopping.clone();
        let options = RestOptions {
            metrics: Arc::new(move || metrics.render()),
            max_body_bytes: settings.rest.max_body_bytes,
            allowed_hosts: settings.rest.allowed_hosts.clone(),
            ready: Arc::new(move || if stopping.load(Ordering::Relaxed) { Err("stopping".to_owned()) } else { Ok(()) }),
            ..RestOptions::default()
        };
        caribou_rest::router(self.runtime.clone(), options)
    }

    /// What the gRPC side is told.
    pub(crate) fn grpc_options(&self) -> GrpcOptions {
        let stopping = self.stopping.clone();
        GrpcOptions { ready: Arc::new(move || !stopping.load(Ordering::Relaxed)), ..GrpcOptions::default() }
    }

    /// Closes every session, then lets the guard go. Resolves when no child is left, and that is on record.
    pub(crate) async fn stop(self) {
        let boot = self.runtime.boot().clone();
        self.runtime.stop().await;
        self.guard.stop().await;
        let Some(store) = self.store else { return };
        if let Err(error) = store.end(boot).await {
            tracing::warn!("the end of this replica is not on record: {error}");
        }
        store.close().await;
    }
}
