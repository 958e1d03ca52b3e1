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
use caribou_core::config::{self, Document, ServerEntry, Source};
use caribou_core::ids::BootId;
use caribou_core::launch::Allowlist;
use caribou_egress::WayOut;
use caribou_grpc::GrpcOptions;
use caribou_identity::{ApiKeyCallers, JwtCallers};
use caribou_interceptors::Registry;
use caribou_mcp::{UpstreamOptions, Upstreams};
use caribou_oauth::TokenEndpoints;
use caribou_ports::identity::Authenticator;
use caribou_ports::machine::Machine;
use caribou_ports::store::{self, Audit, Promotions, Replicas as _};
use caribou_ports::token_endpoint::TokenEndpoint;
use caribou_rest::RestOptions;
use caribou_runtime::{Configuration, Outside, Runtime};
use caribou_store::{Location, SqlStore};
use caribou_workspace::{ConfigFile, FoldersBelow, FoundText, Lookup};
use tokio_util::sync::CancellationToken;

use crate::alone;
use crate::cluster::PeerStanding;
use crate::credentials;
use crate::followed;
use crate::guard::{Guard, GuardOptions};
use crate::machine::{LifeLock, ThisMachine};
use crate::settings::{AuthMode, Loaded, Settings};
use crate::telemetry::Metrics;
use crate::unspent::Unspent;
use crate::{mcp_endpoint, tasks, tls};

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
    /// The same for replicas that share a database: proves to the others that this life is over.
    life_lock: Option<LifeLock>,
    /// Set as soon as the end begins, so that balancers look elsewhere.
    pub(crate) stopping: Arc<AtomicBool>,
    /// Cancelled once its doors close: what stands open ends.
    pub(crate) closing: CancellationToken,
    /// How long it may hand over its sessions.
    pub(crate) drain: Duration,
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

/// The servers that the settings lead to, with the document to follow and to change. A file that is searched for and not there may come later, by hand or by the first change.
///
/// # Errors
/// When the file was named and does not exist, or it cannot be read, or cannot be used at all.
pub(crate) async fn follow_servers(settings: &Settings, store: Option<&SqlStore>) -> anyhow::Result<Configuration> {
    let cwd = std::env::current_dir().context("the working directory is gone")?;
    let named = settings.extensions_config_path.as_deref();
    caribou_workspace::find(&Lookup { argument: named, env: &variable, cwd: &cwd })?;
    let file = ConfigFile::new(named.map(Into::into), Arc::new(variable), cwd.clone());
    let followed = followed::follow(settings, file, (store, &cwd, Arc::new(variable))).await?;
    let document = match followed.text {
        Some(text) => understand(settings, &Source { file: &text.file, text: &text.text })
            .map_err(|problems| refused("the servers' configuration cannot be used", &problems))?,
        None => {
            tracing::warn!("no file names any servers; `caribou config init` writes one");
            Document::default()
        }
    };
    Ok(Configuration {
        file: followed.file,
        source: followed.source,
        variables: Arc::new(variable),
        document,
        allowlist: Allowlist::from_env(&variable),
        unsupported: settings.interceptors.unsupported.into(),
        resets: followed::resets(settings, store)?,
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
fn on_record(boot: &BootId, life_lock: Option<&LifeLock>, peers: Option<&PeerStanding>) -> store::Replica {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let alone = store::Replica::alone(boot.clone(), &host, env!("CARGO_PKG_VERSION"));
    let replica = store::Replica { address: peers.map(|peers| peers.advertised.clone()), ..alone };
    life_lock.map_or_else(|| replica.clone(), |lock| lock.told(replica.clone()))
}

/// Starts the guard. Where others may take over what this replica holds, children live under its lease only.
fn guard(boot: &BootId, is_leased: bool, life_lock: Option<&LifeLock>) -> anyhow::Result<Arc<Guard>> {
    let program = std::env::current_exe().context("the path of this program is unknown")?;
    let lock = life_lock.map(LifeLock::again).transpose().context("there is no descriptor left")?;
    let options = GuardOptions { is_leased, lock, ..GuardOptions::new(program, boot.clone()) };
    Guard::start(options).context("the guard does not start")
}

/// The way to servers.
///
/// # Errors
/// There is no HTTP client.
fn upstreams(
    settings: &Settings,
    boot: &BootId,
    way_out: &WayOut,
    guard: Arc<Guard>,
) -> anyhow::Result<Arc<Upstreams>> {
    let options = UpstreamOptions {
        inherit_env: settings.stdio.inherit_env.clone(),
        child_grace: Duration::from_secs_f64(settings.stdio.grace_seconds),
        era_probe: Duration::from_secs_f64(settings.protocol.probe_seconds),
        way_out: way_out.clone(),
        allowed_networks: settings.network.allowed(),
        ..UpstreamOptions::new(boot.clone())
    };
    Ok(Upstreams::new(options, guard)?)
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
        peers: Option<&PeerStanding>,
        boot: BootId,
    ) -> anyhow::Result<Self> {
        let servers = configuration.document.servers.clone();
        Self::with(settings, servers, Some(configuration), store, peers, boot).await
    }

    /// The same with these servers, whatever becomes of the document that they stand in, and nothing on record: to look
    /// at them.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub(crate) async fn to_look(settings: &Settings, servers: Vec<ServerEntry>) -> anyhow::Result<Self> {
        let boot = BootId::new(uuid::Uuid::now_v7().to_string());
        Self::with(settings, servers, None, None, None, boot).await
    }

    async fn with(
        settings: &Settings,
        servers: Vec<ServerEntry>,
        configuration: Option<Configuration>,
        store: Option<SqlStore>,
        peers: Option<&PeerStanding>,
        boot: BootId,
    ) -> anyhow::Result<Self> {
        let is_leased = store.is_some() && matches!(settings.database_location(), Location::Postgres(_));
        let life_lock = is_leased.then(|| LifeLock::if_possible(&settings.data_dir, &boot)).flatten();
        let guard = guard(&boot, is_leased, life_lock.as_ref())?;
        let way_out = tls::way_out(&settings.network)?;
        let upstreams = upstreams(settings, &boot, &way_out, guard.clone())?;
        let guarded = caribou_egress::Guard::new(settings.network.allowed());
        let root = std::path::absolute(settings.threads.root(&settings.data_dir))?;
        let folders = FoldersBelow::new(root, settings.threads.virtual_prefix.clone());
        let mut lock = None;
        if let Some(store) = &store {
            lock = alone::take_over(store, &settings.database_location()).await?;
            store.begin(on_record(&boot, life_lock.as_ref(), peers)).await?;
        }
        let cluster = match peers.zip(store.as_ref()) {
            Some((peers, store)) => Some(peers.cluster(&boot, store, settings).await?),
            None => None,
        };
        let promotions = store.clone().map(|store| Arc::new(store) as Arc<dyn Promotions>);
        let authenticator = authenticator(settings, store.as_ref(), &way_out).await?;
        let audit = store.clone().filter(|_| settings.audit.enabled).map(|store| Arc::new(store) as Arc<dyn Audit>);
        let allowlist = configuration.as_ref().map(|configuration| &configuration.allowlist);
        let personal = credentials::personal(settings, store.as_ref(), allowlist).await?;
        let oauth_chains = credentials::oauth_chains(settings, store.as_ref()).await?;
        let outside = Outside {
            folders: Some(Arc::new(folders)),
            configuration,
            promotions,
            authenticator,
            audit,
            token_endpoint: Some(token_endpoint(settings, store.as_ref(), guarded, &way_out)?),
            oauth_chains,
            interceptors: Some(Arc::new(interceptors(settings, &way_out)?)),
            personal,
            cluster,
            tasks: tasks::durable(settings, store.as_ref(), &way_out)?,
            machine: is_leased.then(|| Arc::new(ThisMachine::guarded_by(guard.clone())) as Arc<dyn Machine>),
            ..Outside::from(upstreams)
        };
        #[cfg(feature = "faults")]
        let outside = crate::faults::between(outside)?;
        if let (_, Some(why)) = settings.guardrails.rule() {
            let verdict = if settings.guardrails.fail_closed { "every call is denied" } else { "no call is judged" };
            tracing::warn!("{verdict}: {why}");
        }
        let runtime = Runtime::start(servers, settings.runtime_options(), outside, boot).await?;
        if settings.catalog.discover_at_start {
            runtime.discover_in_background();
        }
        Ok(Self {
            runtime,
            guard,
            store,
            _lock: lock,
            life_lock,
            stopping: Arc::default(),
            closing: CancellationToken::new(),
            drain: settings.shutdown.drain(),
        })
    }

    /// The routes over this replica's verbs.
    pub(crate) fn router(&self, settings: &Settings, metrics: Metrics) -> Router {
        let (stopping, runtime) = (self.stopping.clone(), self.runtime.clone());
        let ready = move || match runtime.unready() {
            Some(why) => Err(why.to_owned()),
            None if stopping.load(Ordering::Relaxed) => Err("stopping".to_owned()),
            None => Ok(()),
        };
        let options = RestOptions {
            metrics: Arc::new(move || metrics.render()),
            max_body_bytes: settings.rest.max_body_bytes,
            allowed_hosts: settings.rest.allowed_hosts.clone(),
            ready: Arc::new(ready),
            beside: mcp_endpoint::routes(settings, &self.runtime, self.store.as_ref(), self.closing.clone()),
            challenge_more: mcp_endpoint::challenge_more(settings),
            console: settings.console.enabled,
            closing: self.closing.clone(),
            ..RestOptions::default()
        };
        caribou_rest::router(self.runtime.clone(), options)
    }

    /// What the gRPC side is told.
    pub(crate) fn grpc_options(&self) -> GrpcOptions {
        let (stopping, runtime) = (self.stopping.clone(), self.runtime.clone());
        let ready = move || runtime.unready().is_none() && !stopping.load(Ordering::Relaxed);
        GrpcOptions { ready: Arc::new(ready), ..GrpcOptions::default() }
    }

    /// Closes every session, then lets the guard go. Resolves when no child is left, and that is on record.
    pub(crate) async fn stop(self) {
        let boot = self.runtime.boot().clone();
        self.runtime.stop().await;
        self.guard.stop().await;
        let Some(store) = self.store else { return };
        match store.end(boot).await {
            Ok(()) => self.life_lock.into_iter().for_each(LifeLock::remove),
            Err(error) => tracing::warn!("the end of this replica is not on record: {error}"),
        }
        store.close().await;
    }
}

/// What asks token endpoints. Whoever has a database, and runs without it, presents no refresh token.
fn token_endpoint(
    settings: &Settings,
    store: Option<&SqlStore>,
    guarded: caribou_egress::Guard,
    way_out: &WayOut,
) -> anyhow::Result<Arc<dyn TokenEndpoint>> {
    let endpoints: Arc<dyn TokenEndpoint> = TokenEndpoints::new(guarded, way_out)?;
    Ok(if settings.has_database() && store.is_none() { Arc::new(Unspent(endpoints)) } else { endpoints })
}
