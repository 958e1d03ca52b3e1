//! One running replica: how it starts and how it stops.

use std::sync::{Arc, Mutex};

use caribou_core::bounds;
use caribou_core::config::{InterceptorEntry, ServerEntry};
use caribou_core::credentials::CredentialKey;
use caribou_core::failure::Code;
use caribou_core::ids::BootId;
use caribou_ports::store::Promotions;
use caribou_ports::workspace::ThreadFolders;
use ractor::{Actor, ActorRef};
use tokio::sync::{Semaphore, oneshot};

use crate::api::client_words::Ears;
use crate::audit::AuditLog;
use crate::catalog::{Catalog, CatalogActor, DirtyLists, Published};
use crate::config::{Configuration, ConfigurationActor, ConfigurationDesk, ConfigurationMessage, Configured, InForce};
use crate::error::VerbError;
use crate::exchange::CallBook;
use crate::following::Following;
use crate::gate::Gate;
use crate::interception::Interception;
use crate::membership::OwnLife;
use crate::metrics::Metrics;
use crate::oauth::Chains;
use crate::options::Options;
use crate::outside::{Cluster, Outside};
use crate::personal::Users;
use crate::promotions::PromotionsInMemory;
use crate::reset::Seen;
use crate::roles::{Role, Roles, Root};
use crate::session::{Directory, EpochBook, Homes, Oddities, Registry, RegistryMessage, Router};
use crate::tasks::{Frozen, TaskRoad};

/// A key that no other life of any replica has.
fn credential_key() -> Result<CredentialKey, VerbError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .map_err(|error| VerbError::new(Code::Unavailable, format!("this machine gives no random numbers: {error}")))?;
    Ok(CredentialKey::new(random))
}

/// What is in force at the start.
fn in_force(servers: Vec<ServerEntry>, interceptors: Vec<InterceptorEntry>) -> InForce {
    let in_force = InForce::default();
    let servers = servers.into_iter().map(|entry| Configured { entry, generation: in_force.fresh() }).collect();
    in_force.set(servers, interceptors);
    in_force
}

/// The way from a key to a session, with nobody yet to open any.
fn router(options: &Options, cluster: Option<&Cluster>, homes: Homes) -> Result<Router, VerbError> {
    Ok(Router {
        directory: Directory::default(),
        registry: Role::vacant(),
        book: Arc::new(Mutex::new(EpochBook::new(bounds::MAX_REMEMBERED_EPOCHS))),
        credentials: cluster.map_or_else(credential_key, |cluster| Ok(cluster.credentials.clone()))?,
        homes,
        options: options.clone(),
    })
}

/// Who keeps the sessions.
fn registry(
    options: &Options,
    outside: &Outside,
    (router, chains, in_force): (&Router, &Chains, &InForce),
    dirty: &Arc<DirtyLists>,
    metrics: &Arc<Metrics>,
) -> Registry {
    Registry {
        options: options.clone(),
        outside: outside.clone(),
        homes: router.homes.clone(),
        chains: chains.clone(),
        directory: router.directory.clone(),
        book: router.book.clone(),
        in_force: in_force.clone(),
        dirty: dirty.clone(),
        oddities: Oddities::new(metrics.clone()),
        metrics: metrics.clone(),
    }
}

/// The callers' side of the configuration, with what is heard of other replicas; `None` = none is followed.
fn desk(outside: &Outside, seen: Option<Seen>, metrics: &Arc<Metrics>) -> Option<ConfigurationDesk> {
    outside.configuration.as_ref().map(|followed| ConfigurationDesk::new(followed, seen, metrics.clone()))
}

/// The two sides of the catalogue: who asks it, and who keeps it.
fn catalog(
    options: &Options,
    dirty: Arc<DirtyLists>,
    configuration: Option<ConfigurationDesk>,
    router: Router,
    interception: Interception,
) -> (Catalog, CatalogActor) {
    let (role, published) = (Role::vacant(), Published::default());
    let actor = CatalogActor {
        in_force: interception.in_force.clone(),
        router,
        interception,
        dirty: dirty.clone(),
        published: published.clone(),
        missing_tool: options.tasks.missing_tool,
        at_most: options.call_max,
    };
    (Catalog { role, published, dirty, options: options.clone(), configuration }, actor)
}

/// Who follows the configuration, and the role it fills.
fn configuration_actor(
    (configuration, desk): (Configuration, ConfigurationDesk),
    (in_force, router, catalog, chains): (InForce, Router, Catalog, Chains),
    frozen: Option<Frozen>,
    metrics: Arc<Metrics>,
) -> (ConfigurationActor, Role<ConfigurationMessage>) {
    let ConfigurationDesk { stale, pending, seen, role, .. } = desk;
    let actor =
        ConfigurationActor { configuration, in_force, router, catalog, chains, stale, frozen, pending, seen, metrics };
    (actor, role)
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
    /// This life among the others; `None` = nothing is shared with anybody.
    pub(crate) life: Option<OwnLife>,
    /// Who follows them.
    pub(crate) following: Option<Following>,
    /// The access tokens of servers.
    pub(crate) chains: Chains,
    /// Calls in flight: taken before anything is sent anywhere, since mailboxes have no bound of their own.
    pub(crate) calls: Arc<Semaphore>,
    /// What is in force.
    pub(crate) in_force: InForce,
    /// The calls that other replicas made here.
    pub(crate) exchanges: CallBook,
    /// Who hears clients of this replica.
    pub(crate) ears: Ears,
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
        // Boxed: it holds every part of a replica while it puts them together.
        Box::pin(Self::put_together(servers, options, outside.into(), boot)).await
    }

    async fn put_together(
        servers: Vec<ServerEntry>,
        options: Options,
        outside: Outside,
        boot: BootId,
    ) -> Result<Self, VerbError> {
        let meter = opentelemetry::global::meter("caribou");
        let (metrics, dirty) = (Arc::new(Metrics::new(&meter)), Arc::new(DirtyLists::default()));
        let followed = outside.configuration.as_ref().map(|configuration| &configuration.document.interceptors);
        let in_force = in_force(servers, followed.unwrap_or(&options.interceptors).clone());
        let life = OwnLife::of(&boot, &outside, options.cluster);
        let seen = Seen::of(&boot, &outside, life.as_ref());
        let homes = Homes::new(boot.clone(), &outside, life.as_ref().map(|life| &life.membership), seen.clone());
        let router = router(&options, outside.cluster.as_ref(), homes)?;
        let chains = Chains::new(&outside, boot.clone(), metrics.clone());
        let registry = registry(&options, &outside, (&router, &chains, &in_force), &dirty, &metrics);
        let configuration = desk(&outside, seen, &metrics);
        let interception = Interception { makers: outside.interceptors.clone(), in_force: in_force.clone() };
        let (catalog, catalog_actor) = catalog(&options, dirty, configuration.clone(), router.clone(), interception);
        let frozen = outside.tasks.is_some().then(|| Frozen::of(&in_force.entries(), &in_force.get().interceptors));
        let around = (in_force.clone(), router.clone(), catalog.clone(), chains.clone());
        let followed = outside.configuration.zip(configuration.clone());
        let configuration_actor =
            followed.map(|followed| configuration_actor(followed, around, frozen.clone(), metrics.clone()));
        let tasks = outside.tasks.map(|tasks| {
            let around = (router.clone(), options.clone(), in_force.clone());
            Arc::new(TaskRoad::new(boot.clone(), tasks, frozen.unwrap_or_default(), around, outside.interceptors))
        });
        let life = life.map(|life| life.under(tasks.as_ref().map(|tasks| tasks.configurations()).unwrap_or_default()));
        let following =
            tasks.as_ref().zip(life.as_ref()).map(|(tasks, life)| Following::new(tasks, &life.membership, &meter));
        let roles = Roles {
            registry: (registry, router.registry.clone()),
            catalog: (catalog_actor.clone(), catalog.role.clone()),
            configuration: configuration_actor,
            life: life.clone(),
            following: following.clone(),
        };
        let root = Box::pin(root(roles)).await?;
        chains.live_under(root.get_cell());
        let users =
            outside.personal.map(|personal| Users::new(personal, catalog_actor, &catalog, chains.clone(), &root));
        tasks.iter().zip(&users).for_each(|(tasks, users)| tasks.serve(users));
        let _ = root.cast(()); // From now on the lease is kept, and tasks are followed.
        if let Some(life) = &life {
            life.begun().await;
        }
        Ok(Self {
            boot,
            catalog,
            router,
            configuration,
            folders: outside.folders,
            metrics,
            promotions: outside.promotions.unwrap_or_else(|| Arc::new(PromotionsInMemory::default())),
            gate: Arc::new(Gate::new(outside.authenticator, options.rate_limit)),
            audit: AuditLog::open(outside.audit, &options.audit, &meter),
            users,
            tasks,
            life,
            following,
            calls: Arc::new(Semaphore::new(options.max_calls)),
            chains,
            in_force,
            exchanges: CallBook::default(),
            ears: Ears::default(),
            options,
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
    /// when `SESSION_CLOSE` has passed twice, `CHAIN_STOP` and `AUDIT_FLUSH`; what is not gone by then goes with its host.
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
        self.chains.stop().await;
        if let Some(seen) = self.configuration.as_ref().and_then(|desk| desk.seen.as_ref()) {
            seen.told().await;
        }
        self.root.stop(None);
        // Last: until now somebody may have ended.
        self.audit.stop().await;
    }
}
