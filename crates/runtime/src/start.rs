//! One running replica: how it starts and how it stops.

use std::sync::{Arc, Mutex};

use caribou_core::bounds;
use caribou_core::config::ServerEntry;
use caribou_core::credentials::CredentialKey;
use caribou_core::failure::Code;
use caribou_core::ids::BootId;
use caribou_core::launch::Allowlist;
use caribou_ports::event_sink::EventSink;
use caribou_ports::identity::Authenticator;
use caribou_ports::interceptor::Interceptors;
use caribou_ports::mcp::Connector;
use caribou_ports::store::{Audit, Connections, Promotions, TaskStore};
use caribou_ports::task_driver::TaskDriver;
use caribou_ports::token_endpoint::TokenEndpoint;
use caribou_ports::vault::Vault;
use caribou_ports::workspace::ThreadFolders;
use ractor::{Actor, ActorRef};
use tokio::sync::{Semaphore, oneshot};

use crate::audit::AuditLog;
use crate::catalog::{Catalog, CatalogActor, DirtyLists, Published};
use crate::config::{Configuration, ConfigurationActor, ConfigurationDesk, Configured, InForce};
use crate::error::VerbError;
use crate::following::Following;
use crate::gate::Gate;
use crate::interception::Interception;
use crate::metrics::Metrics;
use crate::oauth::Chains;
use crate::options::Options;
use crate::personal::Users;
use crate::promotions::PromotionsInMemory;
use crate::roles::{Role, Roles, Root};
use crate::session::{Directory, EpochBook, Oddities, Registry, RegistryMessage, Router};
use crate::tasks::{Frozen, TaskRoad};

/// What a replica reaches the world by.
#[derive(Clone)]
pub struct Outside {
    /// Opens sessions with servers.
    pub connector: Arc<dyn Connector>,
    /// The folders that children of a thread work in; `None` = they inherit our working directory.
    pub folders: Option<Arc<dyn ThreadFolders>>,
    /// Where the servers are configured, to follow it and to change it; `None` = they stay as they are given.
    pub configuration: Option<Configuration>,
    /// Keeps what threads have promoted; `None` = this process does, for as long as it lives.
    pub promotions: Option<Arc<dyn Promotions>>,
    /// Tells callers apart; `None` = it is not asked who they are, and all may everything.
    pub authenticator: Option<Arc<dyn Authenticator>>,
    /// Asks token endpoints; `None` = servers with OAuth are refused.
    pub token_endpoint: Option<Arc<dyn TokenEndpoint>>,
    /// Makes the interceptors of `mcpInterceptors`; `None` = servers are refused while there are any.
    pub interceptors: Option<Arc<dyn Interceptors>>,
    /// Where calls are put on record; `None` = nowhere.
    pub audit: Option<Arc<dyn Audit>>,
    /// What users bring for themselves; `None` = nobody can.
    pub personal: Option<Personal>,
    /// What tasks are followed by; `None` = there are none.
    pub tasks: Option<DurableTasks>,
}

/// Where tasks are kept, who speaks to servers about them, and who is told.
#[derive(Clone)]
pub struct DurableTasks {
    /// The store.
    pub store: Arc<dyn TaskStore>,
    /// The drivers, each under its own name.
    pub drivers: Vec<Arc<dyn TaskDriver>>,
    /// Where events that ask for attention go.
    pub sinks: Vec<Arc<dyn EventSink>>,
}

/// Where personal connections are kept, and what encrypts them.
#[derive(Clone)]
pub struct Personal {
    /// The store.
    pub connections: Arc<dyn Connections>,
    /// The cipher.
    pub vault: Arc<dyn Vault>,
    /// How many one user may have.
    pub max_per_user: u32,
    /// Which programs users may start; `None` = only remote servers are theirs to bring.
    pub stdio: Option<Allowlist>,
}

impl<C: Connector> From<Arc<C>> for Outside {
    /// Only a connector, for programs that embed the runtime.
    fn from(connector: Arc<C>) -> Self {
        Self {
            connector,
            folders: None,
            configuration: None,
            promotions: None,
            authenticator: None,
            token_endpoint: None,
            interceptors: None,
            audit: None,
            personal: None,
            tasks: None,
        }
    }
}

/// A key that no other life of any replica has.
fn credential_key() -> Result<CredentialKey, VerbError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .map_err(|error| VerbError::new(Code::Unavailable, format!("this machine gives no random numbers: {error}")))?;
    Ok(CredentialKey::new(random))
}

/// Starts the roles; ending what this answers with ends them all.
async fn root(roles: Roles) -> Result<ActorRef<()>, VerbError> {
    let started = Actor::spawn(None, Root, roles).await;
    let failed = |error| VerbError::new(Code::Unavailable, format!("the actors did not start: {error}"));
    started.map(|(root, _)| root).map_err(failed)
}

/// One running replica. Cheap to clone; all clones are the same replica.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) boot: BootId,
    pub(crate) options: Options,
    pub(crate) catalog: Catalog,
    pub(crate) router: Router,
    pub(crate) configuration: Option<ConfigurationDesk>,
    pub(crate) folders: Option<Arc<dyn ThreadFolders>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) promotions: Arc<dyn Promotions>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) audit: AuditLog,
    /// What users brought for themselves; `None` = nobody can.
    pub(crate) users: Option<Arc<Users>>,
    /// What tasks are followed by; `None` = there are none.
    pub(crate) tasks: Option<Arc<TaskRoad>>,
    /// Who follows them.
    pub(crate) following: Option<Following>,
    /// Calls in flight: taken before anything is sent anywhere, since mailboxes have no bound of their own.
    pub(crate) calls: Arc<Semaphore>,
    root: ActorRef<()>,
}

impl Runtime {
    /// Starts a replica with these servers. Opens nothing yet.
    ///
    /// # Errors
    /// The actors could not be started.
    pub async fn start(
        servers: Vec<ServerEntry>,
        options: Options,
        outside: impl Into<Outside>,
        boot: BootId,
    ) -> Result<Self, VerbError> {
        let outside = outside.into();
        let meter = opentelemetry::global::meter("caribou");
        let metrics = Arc::new(Metrics::new(&meter));
        let dirty = Arc::new(DirtyLists::default());
        let in_force = InForce::default();
        let servers = servers.into_iter().map(|entry| Configured { entry, generation: in_force.fresh() }).collect();
        let followed = outside.configuration.as_ref().map(|configuration| &configuration.document.interceptors);
        in_force.set(servers, followed.unwrap_or(&options.interceptors).clone());
        let router = Router {
            directory: Directory::default(),
            registry: Role::vacant(),
            book: Arc::new(Mutex::new(EpochBook::new(bounds::MAX_REMEMBERED_EPOCHS))),
            credentials: credential_key()?,
            options: options.clone(),
        };
        let chains = Chains::new(outside.token_endpoint.clone(), metrics.clone());
        let registry = Registry {
            options: options.clone(),
            outside: outside.clone(),
            chains: chains.clone(),
            directory: router.directory.clone(),
            book: router.book.clone(),
            in_force: in_force.clone(),
            dirty: dirty.clone(),
            oddities: Oddities::new(metrics.clone()),
            metrics: metrics.clone(),
        };
        let configuration =
            outside.configuration.as_ref().map(|configuration| ConfigurationDesk::new(configuration, metrics.clone()));
        let catalog = Catalog {
            role: Role::vacant(),
            published: Published::default(),
            dirty,
            options: options.clone(),
            configuration: configuration.clone(),
        };
        let catalog_actor = CatalogActor {
            in_force: in_force.clone(),
            router: router.clone(),
            interception: Interception { makers: outside.interceptors.clone(), in_force: in_force.clone() },
            dirty: catalog.dirty.clone(),
            published: catalog.published.clone(),
            missing_tool: options.tasks.missing_tool,
            at_most: options.call_max,
        };
        let frozen = outside.tasks.is_some().then(|| Frozen::of(&in_force.entries(), &in_force.get().interceptors));
        let configuration_actor = outside.configuration.zip(configuration.clone()).map(|(configuration, desk)| {
            let (router, catalog) = (router.clone(), catalog.clone());
            let role = desk.role.clone();
            (
                ConfigurationActor {
                    configuration,
                    in_force: in_force.clone(),
                    router,
                    catalog,
                    stale: desk.stale,
                    frozen: frozen.clone(),
                    pending: desk.pending,
                },
                role,
            )
        });
        let (personal, folders) = (outside.personal, outside.folders);
        let tasks = outside.tasks.map(|tasks| {
            let around = (router.clone(), options.clone(), in_force.clone());
            Arc::new(TaskRoad::new(boot.clone(), tasks, frozen.unwrap_or_default(), around, outside.interceptors))
        });
        let following = tasks.as_ref().map(|tasks| Following::new(tasks, options.cluster, &meter));
        let roles = Roles {
            registry: (registry, router.registry.clone()),
            catalog: (catalog_actor.clone(), catalog.role.clone()),
            configuration: configuration_actor,
            following: following.clone(),
        };
        let root = root(roles).await?;
        chains.live_under(root.get_cell());
        let users = personal.map(|personal| Users::new(personal, catalog_actor, &catalog, chains, &root));
        if let (Some(tasks), Some(users)) = (&tasks, &users) {
            tasks.serve(users);
        }
        // From now on tasks are followed.
        let _ = root.cast(());
        let audit = AuditLog::open(outside.audit, &options.audit, &meter);
        let gate = Arc::new(Gate::new(outside.authenticator, options.rate_limit));
        let promotions = outside.promotions.unwrap_or_else(|| Arc::new(PromotionsInMemory::default()));
        let calls = Arc::new(Semaphore::new(options.max_calls));
        Ok(Self {
            boot,
            options,
            catalog,
            router,
            configuration,
            folders,
            metrics,
            promotions,
            gate,
            audit,
            users,
            tasks,
            following,
            calls,
            root,
        })
    }

    /// This life of this replica.
    pub fn boot(&self) -> &BootId {
        &self.boot
    }

    /// Begins to discover every server, so that the first listing finds them known.
    pub fn discover_in_background(&self) {
        self.catalog.discover_all();
    }

    /// Closes every session, ends every actor and stores what is not on record yet. Resolves when nothing is left, or
    /// when `SESSION_CLOSE` has passed twice, and `AUDIT_FLUSH`; what is not gone by then goes with its host.
    pub async fn stop(&self) {
        // First: what is under way needs sessions.
        if let Some(following) = &self.following {
            following.stop().await;
        }
        let (done, stopped) = oneshot::channel();
        let _ = self.router.registry.cast(RegistryMessage::Stop { done });
        if tokio::time::timeout(bounds::SESSION_CLOSE * 2, stopped).await.is_err() {
            tracing::warn!("some sessions did not close in time");
        }
        self.root.stop(None);
        // Last: until now somebody may have ended.
        self.audit.stop().await;
    }
}
