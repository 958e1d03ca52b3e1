//! One user's own servers: looked up, put in force, discovered.
//!
//! Looked at by one request at a time, at most once a second; the others of that user wait for it. Untouched servers
//! keep their sessions and tool lists through an edit of another one. A definition that cannot be decrypted counts as
//! wrong, with the reason, and the others serve (contract 7.7).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_core::bounds::PERSONAL_LOOK;
use caribou_core::config::{ServerEntry, personal};
use caribou_core::ids::{ServerName, UserId};
use caribou_ports::peers::{Change, Listed};
use caribou_ports::store::{StoreError, StoredConnection};
use caribou_ports::vault::NotOpened;
use ractor::Actor;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::users::Ground;
use crate::catalog::{Catalog, CatalogActor, Published, Snapshot};
use crate::config::{Binding, Configured, InForce, reconciled};
use crate::outside::Personal;
use crate::roles::Role;

/// One user.
pub(crate) struct User {
    id: UserId,
    in_force: InForce,
    /// Its own tools. Filled by an actor once there is a server to discover.
    pub(super) catalog: Catalog,
    looked: tokio::sync::Mutex<Looked>,
    asked_at: Mutex<Instant>,
    /// Whether the next look is made however soon it comes.
    is_stale: AtomicBool,
    merged: Mutex<Option<Merged>>,
}

/// What the last look saw.
#[derive(Default)]
struct Looked {
    at: Option<Instant>,
    revision: Option<i64>,
    renewal: u64,
}

/// What was last put together, and out of what.
struct Merged {
    deployment: Arc<Snapshot>,
    own: Arc<Snapshot>,
    whole: Arc<Snapshot>,
}

impl User {
    pub(super) fn new(id: UserId, ground: &Ground) -> Self {
        let catalog = Catalog {
            role: Role::vacant(),
            published: Published::default(),
            // What is stored of it is followed here.
            configuration: None,
            ..ground.catalog.clone()
        };
        announce(&catalog.published, ground, id.clone());
        Self {
            in_force: ground.actor.in_force.of_user(id.clone()),
            id,
            catalog,
            looked: tokio::sync::Mutex::default(),
            asked_at: Mutex::new(Instant::now()),
            is_stale: AtomicBool::new(false),
            merged: Mutex::default(),
        }
    }

    /// What a call to one of its servers goes by, if it takes part.
    pub(crate) fn binding(&self, server: &ServerName) -> Option<Binding> {
        self.in_force.get().binding(server)
    }

    /// For how long it has not asked.
    pub(super) fn idle_for(&self) -> Duration {
        self.asked_at.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Sees to it that what is stored is in force.
    ///
    /// # Errors
    /// It was never looked up and the store cannot be read. What is known goes on otherwise.
    pub(super) async fn look(&self, ground: &Ground) -> Result<(), StoreError> {
        *self.asked_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let mut looked = self.looked.lock().await;
        let renewal = self.in_force.renewals();
        let is_whole =
            looked.renewal == renewal && (self.in_force.get().list.is_empty() || self.catalog.role.is_filled());
        let is_stale = self.is_stale.swap(false, Ordering::AcqRel);
        if is_whole && !is_stale && looked.at.is_some_and(|at| at.elapsed() < PERSONAL_LOOK) {
            return Ok(());
        }
        let seen = self.see(ground, &looked, is_whole).await;
        looked.at = Some(Instant::now());
        match seen {
            Ok((_, None)) => Ok(()),
            Ok((revision, Some(stored))) => {
                self.put_in_force(ground, stored, looked.renewal == renewal).await;
                (looked.revision, looked.renewal) = (Some(revision), renewal);
                Ok(())
            }
            Err(error) if looked.revision.is_some() && is_whole => {
                tracing::warn!("personal connections are served as they were: {error}");
                Ok(())
            }
            Err(error) => {
                looked.at = None;
                Err(error)
            }
        }
    }

    /// What is stored, if that is news. The number first: what is changed in between is seen by the next look.
    async fn see(
        &self,
        ground: &Ground,
        looked: &Looked,
        is_whole: bool,
    ) -> Result<(i64, Option<Vec<StoredConnection>>), StoreError> {
        let connections = &ground.personal.connections;
        let revision = connections.revision(self.id.clone()).await?;
        if is_whole && looked.revision == Some(revision) {
            return Ok((revision, None));
        }
        Ok((revision, Some(connections.of_user(self.id.clone()).await?)))
    }

    /// The next request looks again, however soon it comes.
    pub(super) fn look_again(&self) {
        self.is_stale.store(true, Ordering::Release);
    }

    async fn put_in_force(&self, ground: &Ground, stored: Vec<StoredConnection>, is_kept: bool) {
        let entries: Vec<ServerEntry> = stored.iter().map(|connection| entry(&ground.personal, connection)).collect();
        let fresh = |entry| Configured { entry, generation: self.in_force.fresh() };
        let list = if is_kept { reconciled(&self.in_force, entries) } else { entries.into_iter().map(fresh).collect() };
        let had_any = !self.in_force.get().list.is_empty();
        self.in_force.set_personal(list);
        if had_any {
            ground.supersede().await;
        }
        if self.catalog.role.is_filled() {
            self.catalog.supersede().await;
        } else if !self.in_force.get().list.is_empty() {
            self.run(ground).await;
        }
    }

    /// Starts the actor of its catalogue.
    async fn run(&self, ground: &Ground) {
        let published = self.catalog.published.clone();
        let actor = CatalogActor { in_force: self.in_force.clone(), published, ..ground.actor.clone() };
        match Actor::spawn_linked(None, actor, (), ground.root.clone()).await {
            Ok((started, _)) => self.catalog.role.fill(started),
            Err(error) => tracing::error!(%error, "the catalogue of a user did not start"),
        }
    }

    /// Takes everything of it out of force and ends its actor.
    pub(super) fn leave(&self, ground: &Ground) {
        let had = self.in_force.get();
        self.in_force.set_personal(Vec::new());
        ground.actor.dirty.forget(had.list.iter().map(|configured| &configured.entry.name));
        self.catalog.role.vacate();
    }

    /// The deployment's tools and its own; the deployment's keep their names. Put together once for each pair.
    pub(super) fn merged(&self, deployment: &Arc<Snapshot>) -> Arc<Snapshot> {
        let own = self.catalog.snapshot();
        if own.entries.is_empty() {
            return deployment.clone();
        }
        let mut merged = self.merged.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*merged
            && Arc::ptr_eq(&known.deployment, deployment)
            && Arc::ptr_eq(&known.own, &own)
        {
            return known.whole.clone();
        }
        let entries = deployment.entries.iter().chain(&own.entries).cloned().collect();
        let whole = Arc::new(Snapshot::of(entries));
        *merged = Some(Merged { deployment: deployment.clone(), own, whole: whole.clone() });
        whole
    }
}

/// Tells the clients of a user of the tools that its own servers turn out to have.
fn announce(published: &Published, ground: &Ground, user: UserId) {
    let (mut changes, dirty) = (published.changes(), ground.actor.dirty.clone());
    tokio::spawn(async move {
        // As long as the user is held.
        while changes.changed().await.is_ok() {
            dirty.changes.tell(&Change::Tools(Listed { server: None, owner: Some(user.clone()) }));
        }
    });
}

/// What a stored connection means, or why it is left out.
fn entry(personal: &Personal, stored: &StoredConnection) -> ServerEntry {
    let config = match definition(personal, stored) {
        Ok(definition) => personal::read(&stored.user, &stored.name, &definition, personal.stdio.as_ref()),
        Err(error) => Err(format!("its definition cannot be read: {error}")),
    };
    ServerEntry { name: ServerName::new(&*stored.runtime_name), config }
}

/// The definition that is stored.
///
/// # Errors
/// It was encrypted with a key that is not ours, or is damaged.
pub(super) fn definition(personal: &Personal, stored: &StoredConnection) -> Result<Map<String, Value>, NotOpened> {
    let opened = personal.vault.open(&stored.place(), &stored.sealed)?;
    let mut definition: Map<String, Value> =
        serde_json::from_str(opened.secret.expose()).map_err(|_| NotOpened::Damaged)?;
    definition.insert("enabled".to_owned(), stored.enabled.into());
    Ok(definition)
}
