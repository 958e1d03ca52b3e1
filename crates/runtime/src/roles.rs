//! The root of the supervision tree and the long-lived roles below it.
//!
//! A role that fails is started anew: the registry without its sessions, which were its linked children, the
//! catalogue without its cache. Whoever holds a [`Role`] reaches the one now in office.

use std::sync::{Arc, PoisonError, RwLock};

use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, Message, SpawnErr, SupervisionEvent};

use crate::catalog::{CatalogActor, CatalogMessage};
use crate::session::{Registry, RegistryMessage};

/// The address of a role, whoever fills it at the moment.
pub(crate) struct Role<M>(Arc<RwLock<Option<ActorRef<M>>>>);

impl<M> Clone for Role<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Nobody fills the role: the replica is stopping.
#[derive(Debug)]
pub(crate) struct Vacant;

impl<M: Message> Role<M> {
    pub(crate) fn vacant() -> Self {
        Self(Arc::new(RwLock::new(None)))
    }

    fn fill(&self, actor: ActorRef<M>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(actor);
    }

    fn is(&self, id: ActorId) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(|actor| actor.get_id() == id)
    }

    /// Sends a message, without waiting.
    pub(crate) fn cast(&self, message: M) -> Result<(), Vacant> {
        match &*self.0.read().unwrap_or_else(PoisonError::into_inner) {
            Some(actor) => actor.cast(message).map_err(|_| Vacant),
            None => Err(Vacant),
        }
    }
}

/// Everything the roles are made of.
pub(crate) struct Roles {
    pub(crate) registry: Registry,
    pub(crate) registry_role: Role<RegistryMessage>,
    pub(crate) catalog: CatalogActor,
    pub(crate) catalog_role: Role<CatalogMessage>,
}

/// The supervisor. Stopping it ends every actor of the replica.
pub(crate) struct Root;

impl Actor for Root {
    type Msg = ();
    type State = Roles;
    type Arguments = Roles;

    async fn pre_start(&self, myself: ActorRef<()>, roles: Roles) -> Result<Roles, ActorProcessingErr> {
        roles.start_registry(&myself).await?;
        roles.start_catalog(&myself).await?;
        Ok(roles)
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<()>,
        event: SupervisionEvent,
        roles: &mut Roles,
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorFailed(cell, error) = event {
            tracing::error!(actor = %cell.get_id(), %error, "a role failed and is started anew");
            if roles.registry_role.is(cell.get_id()) {
                roles.start_registry(&myself).await?;
            } else if roles.catalog_role.is(cell.get_id()) {
                roles.start_catalog(&myself).await?;
            }
        }
        Ok(())
    }
}

impl Roles {
    async fn start_registry(&self, root: &ActorRef<()>) -> Result<(), SpawnErr> {
        let (actor, _) = Actor::spawn_linked(None, self.registry.clone(), (), root.get_cell()).await?;
        self.registry_role.fill(actor);
        Ok(())
    }

    async fn start_catalog(&self, root: &ActorRef<()>) -> Result<(), SpawnErr> {
        let (actor, _) = Actor::spawn_linked(None, self.catalog.clone(), (), root.get_cell()).await?;
        self.catalog_role.fill(actor);
        Ok(())
    }
}
