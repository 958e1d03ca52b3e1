//! What is known of all servers at one moment, immutable once published.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use caribou_core::config::{Origin, ServerConfig};
use caribou_core::ids::ServerName;
use caribou_core::task::native::Support;
use caribou_core::tool::{ServerTools, could_belong_to, merge};
use caribou_ports::mcp::SessionFacts;
use tokio::sync::watch;
use tokio::time::Instant;

use super::makes::Makes;
use super::offer::Offer;
use crate::api::list_tools::{ListedTool, ListedTools};
use crate::config::{Binding, Configured, Generation};
use crate::error::VerbError;
use crate::interception::Chain;
use crate::metrics::{Metrics, ToolLabels};
use crate::session::Home;

/// How one server is.
#[derive(Clone)]
pub(crate) enum EntryState {
    /// Nobody asked yet.
    Unknown,
    /// Being discovered for the first time.
    Starting,
    Ready,
    Failed(VerbError),
    Disabled,
    Dropped(String),
}

/// One server.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) name: ServerName,
    pub(crate) config: Option<Arc<ServerConfig>>,
    pub(crate) generation: Generation,
    pub(crate) state: EntryState,
    pub(crate) since: Instant,
    pub(crate) tools: Arc<ServerTools>,
    pub(crate) facts: Option<SessionFacts>,
    /// What stands around its calls, once it was discovered.
    pub(crate) chain: Option<Arc<Chain>>,
    /// Whether it was discovered without a tool that its toolsets name.
    pub(crate) lacks_task_tool: bool,
}

impl Entry {
    pub(crate) fn new(configured: &Configured) -> Self {
        let Configured { entry, generation } = configured;
        let (config, state) = match &entry.config {
            Ok(config) if config.enabled => (Some(config.clone()), EntryState::Unknown),
            Ok(config) => (Some(config.clone()), EntryState::Disabled),
            Err(reason) => (None, EntryState::Dropped(reason.clone())),
        };
        Self {
            name: entry.name.clone(),
            config,
            generation: *generation,
            state,
            since: Instant::now(),
            tools: Arc::default(),
            facts: None,
            chain: None,
            lacks_task_tool: false,
        }
    }

    /// What is in force now of a server that was `before`. One that is left out for the same reason as before has been
    /// so since then.
    pub(crate) fn succeeding(before: Option<&Self>, configured: &Configured) -> Self {
        let entry = Self::new(configured);
        let is_same = |before: &&Self| match (&before.state, &entry.state) {
            (EntryState::Disabled, EntryState::Disabled) => true,
            (EntryState::Dropped(before), EntryState::Dropped(now)) => before == now,
            _ => false,
        };
        let since = before.filter(is_same).map_or(entry.since, |before| before.since);
        Self { since, ..entry }
    }

    /// The configuration, if the server takes part.
    pub(crate) fn enabled(&self) -> Option<&Arc<ServerConfig>> {
        self.config.as_ref().filter(|config| config.enabled)
    }

    /// What a call to this server goes by, if it takes part.
    pub(crate) fn binding(&self) -> Option<Binding> {
        self.enabled().map(|server| Binding {
            server: server.clone(),
            generation: self.generation,
            headers: None,
            home: Home::Here,
        })
    }

    /// Whether this is what is known of exactly that server, configured by exactly that document.
    pub(crate) fn is_of(&self, binding: &Binding) -> bool {
        self.generation == binding.generation
            && self.config.as_ref().is_some_and(|config| Arc::ptr_eq(config, &binding.server))
    }

    /// Whether a tool of this name may turn up here.
    pub(crate) fn could_have(&self, visible: &str) -> bool {
        self.enabled().is_some_and(|config| could_belong_to(visible, config.shown_name(), config.tool_name_prefix))
    }

    fn is_unsettled(&self) -> bool {
        matches!(self.state, EntryState::Unknown | EntryState::Starting)
    }
}

/// Where a visible name leads.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) binding: Binding,
    pub(crate) raw_name: Arc<str>,
    pub(crate) labels: ToolLabels,
    pub(crate) chain: Arc<Chain>,
    /// `Some` = a call of it makes a task, or may make one.
    pub(crate) makes: Option<Makes>,
    /// Place of its server in the document.
    place: usize,
}

/// All servers at one moment.
#[derive(Default)]
pub(crate) struct Snapshot {
    pub(crate) entries: Vec<Entry>,
    targets: HashMap<Arc<str>, Target>,
    pub(crate) listed: ListedTools,
    /// Names hidden by another server's, for people.
    pub(crate) warnings: Vec<String>,
    /// What is offered of it, once somebody asked.
    pub(super) offer: OnceLock<Offer>,
}

impl Snapshot {
    /// Puts one together; the first server in document order keeps a name.
    pub(crate) fn of(entries: Vec<Entry>) -> Self {
        let (by_name, warnings) = merge(entries.iter().map(|entry| (entry.name.as_str(), &*entry.tools)));
        let mut listed = ListedTools::default();
        let mut targets = HashMap::with_capacity(by_name.len());
        for (place, entry) in entries.iter().enumerate() {
            match (&entry.state, entry.enabled()) {
                (EntryState::Failed(error), _) => listed.failed.push((entry.name.clone(), error.detail.clone())),
                (EntryState::Unknown | EntryState::Starting, Some(_)) => listed.pending.push(entry.name.clone()),
                _ => {}
            }
            // One that was not discovered has no chain, and no tools either.
            let (Some(binding), Some(chain)) = (entry.binding(), &entry.chain) else { continue };
            let connection = match &binding.server.origin {
                Origin::Personal { connection } => Some(connection.clone()),
                Origin::Deployment => None,
            };
            for (index, tool) in entry.tools.tools.iter().enumerate() {
                if by_name.get(&tool.name) != Some(&(place, index)) {
                    continue;
                }
                let makes = Makes::of(&binding.server, tool, entry.facts.as_ref());
                let offer = makes.as_ref().map(|makes| makes.offer);
                listed.tools.push(ListedTool {
                    name: tool.name.clone(),
                    server: entry.name.clone(),
                    raw_name: tool.raw_name.clone(),
                    tool: tool.tool.clone(),
                    repaired: tool.repaired.clone(),
                    connection: connection.clone(),
                    routing: Arc::new(binding.server.routing_of(&tool.raw_name)),
                    is_ours: false,
                    support: Support::of(offer, makes.as_ref().is_some_and(Makes::is_native)),
                });
                let labels = Metrics::tool_labels(&binding.server, &tool.raw_name);
                let (raw_name, chain) = (tool.raw_name.clone(), chain.clone());
                let target = Target { binding: binding.clone(), raw_name, labels, chain, makes, place };
                targets.insert(tool.name.clone(), target);
            }
        }
        Self { entries, targets, listed, warnings, offer: OnceLock::new() }
    }

    /// Whether some tool lets it be known that calls of it make tasks.
    pub(crate) fn makes_tasks(&self) -> bool {
        self.targets.values().any(|target| target.makes.as_ref().is_some_and(Makes::is_announced))
    }

    fn shows_the_tools_of(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.listed.tools, &other.listed.tools);
        // A list that was asked for again and is as it was is no change.
        let is_same = |(a, b): (&ListedTool, &ListedTool)| {
            a.name == b.name && (Arc::ptr_eq(&a.tool, &b.tool) || a.tool.get() == b.tool.get())
        };
        ours.len() == theirs.len() && ours.iter().zip(theirs).all(is_same)
    }

    /// Where `name` leads, unless an earlier server that is still being discovered may claim it.
    pub(crate) fn target(&self, name: &str) -> Option<&Target> {
        let target = self.targets.get(name)?;
        let earlier = &self.entries[..target.place.min(self.entries.len())];
        let claimed = earlier.iter().any(|entry| entry.is_unsettled() && entry.could_have(name));
        (!claimed).then_some(target)
    }
}

/// The snapshot in force.
#[derive(Clone, Default)]
pub(crate) struct Published {
    snapshot: Arc<RwLock<Arc<Snapshot>>>,
    /// Counts the snapshots that show other tools than the one before.
    changes: Arc<watch::Sender<u64>>,
}

impl Published {
    pub(crate) fn get(&self) -> Arc<Snapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, snapshot: Snapshot) {
        let mut published = self.snapshot.write().unwrap_or_else(PoisonError::into_inner);
        let shows_others = !published.shows_the_tools_of(&snapshot);
        *published = Arc::new(snapshot);
        drop(published);
        if shows_others {
            self.changes.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    /// Tells of every change of the tools from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
