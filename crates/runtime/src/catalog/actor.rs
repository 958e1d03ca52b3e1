//! Runs discoveries, one at a time for each server, and publishes what they find.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::ServerEntry;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::dirty::DirtyLists;
use super::discover::{Discovery, discover};
use super::snapshot::{Entry, EntryState, Published, Snapshot};
use crate::error::VerbError;
use crate::session::Router;

/// What the catalogue works with.
#[derive(Clone)]
pub(crate) struct CatalogActor {
    pub(crate) servers: Arc<[ServerEntry]>,
    pub(crate) router: Router,
    pub(crate) dirty: Arc<DirtyLists>,
    pub(crate) published: Published,
    /// Bound of a discovery whose server has none.
    pub(crate) at_most: Duration,
}

pub(crate) enum CatalogMessage {
    /// Answers when the server at this place is as fresh as it can be: at once when nothing is to be done.
    Want {
        place: usize,
        settled: oneshot::Sender<()>,
    },
    Discovered {
        place: usize,
        found: Result<Discovery, VerbError>,
    },
}

pub(crate) struct CatalogState {
    entries: Vec<Entry>,
    /// Who waits for the discovery of each server now running; `None` = none runs.
    running: Vec<Option<Vec<oneshot::Sender<()>>>>,
}

impl Actor for CatalogActor {
    type Msg = CatalogMessage;
    type State = CatalogState;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Self::Msg>, (): ()) -> Result<Self::State, ActorProcessingErr> {
        let entries: Vec<Entry> = self.servers.iter().map(Entry::new).collect();
        self.published.set(Snapshot::of(entries.clone()));
        let running = entries.iter().map(|_| None).collect();
        Ok(CatalogState { entries, running })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            CatalogMessage::Want { place, settled } => self.want(&myself, state, place, settled),
            CatalogMessage::Discovered { place, found } => self.discovered(state, place, found),
        }
        Ok(())
    }
}

impl CatalogActor {
    fn want(
        &self,
        myself: &ActorRef<CatalogMessage>,
        state: &mut CatalogState,
        place: usize,
        settled: oneshot::Sender<()>,
    ) {
        let (Some(entry), Some(running)) = (state.entries.get_mut(place), state.running.get_mut(place)) else { return };
        if let Some(waiting) = running {
            return waiting.push(settled);
        }
        let Some(server) = entry.enabled().cloned() else { return };
        if matches!(entry.state, EntryState::Ready) && !self.dirty.is_dirty(&entry.name) {
            let _ = settled.send(());
            return;
        }
        *running = Some(vec![settled]);
        let changed = self.dirty.take(&entry.name);
        if !matches!(entry.state, EntryState::Ready) {
            entry.state = EntryState::Starting;
            entry.since = Instant::now();
            self.published.set(Snapshot::of(state.entries.clone()));
        }
        let (router, at_most, to) = (self.router.clone(), self.at_most, myself.clone());
        tokio::spawn(async move {
            let found = discover(&router, &server, changed, at_most).await;
            let _ = to.cast(CatalogMessage::Discovered { place, found });
        });
    }

    fn discovered(&self, state: &mut CatalogState, place: usize, found: Result<Discovery, VerbError>) {
        let Some(entry) = state.entries.get_mut(place) else { return };
        match found {
            Ok(discovery) => {
                tracing::info!(server = %entry.name, tools = discovery.tools.tools.len(), "discovered");
                entry.state = EntryState::Ready;
                entry.tools = Arc::new(discovery.tools);
                entry.facts = Some(discovery.facts);
            }
            Err(error) => {
                tracing::warn!(server = %entry.name, code = %error.code, "skipping MCP server: {}", error.detail);
                entry.state = EntryState::Failed(error);
                entry.tools = Arc::default();
            }
        }
        entry.since = Instant::now();
        let snapshot = Snapshot::of(state.entries.clone());
        for warning in snapshot.warnings.iter().filter(|w| !self.published.get().warnings.contains(w)) {
            tracing::warn!("{warning}");
        }
        self.published.set(snapshot);
        for settled in state.running.get_mut(place).and_then(Option::take).into_iter().flatten() {
            let _ = settled.send(());
        }
    }
}
