//! The root of the supervision tree and the long-lived roles below it.
//!
//! A role that fails is started anew: the registry without its sessions, which were its linked children, the
//! catalogue without its cache, the configuration with what is in force. Whoever holds a [`Role`] reaches the
//! one now in office.

use std::sync::{Arc, PoisonError, RwLock};

use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, ActorStatus, Message, SpawnErr, SupervisionEvent};

use crate::catalog::{CatalogActor, CatalogMessage};
use crate::config::{ConfigurationActor, ConfigurationMessage};
use crate::following::Following;
use crate::membership::OwnLife;
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

    pub(crate) fn fill(&self, actor: ActorRef<M>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(actor);
    }

    fn is(&self, id: ActorId) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(|actor| actor.get_id() == id)
    }

    /// Whether somebody fills it who has not ended.
    pub(crate) fn is_filled(&self) -> bool {
        let filled = self.0.read().unwrap_or_else(PoisonError::into_inner);
        filled.as_ref().is_some_and(|actor| actor.get_status() < ActorStatus::Stopping)
    }

    /// Ends whoever fills it.
    pub(crate) fn vacate(&self) {
        if let Some(actor) = self.0.write().unwrap_or_else(PoisonError::into_inner).take() {
            actor.stop(None);
        }
    }

    /// Sends a message, without waiting.
    pub(crate) fn cast(&self, message: M) -> Result<(), Vacant> {
        match &*self.0.read().unwrap_or_else(PoisonError::into_inner) {
            Some(actor) => actor.cast(message).map_err(|_| Vacant),
            None => Err(Vacant),
        }
    }
}

/// Everything the roles are made of: each actor and the role it fills.
pub(crate) struct Roles {
    pub(crate) registry: (Registry, Role<RegistryMessage>),
    pub(crate) catalog: (CatalogActor, Role<CatalogMessage>),
    pub(crate) configuration: Option<(ConfigurationActor, Role<ConfigurationMessage>)>,
    /// Started by the first message to the root, when everything that acts under the lease is in place.
    pub(crate) life: Option<OwnLife>,
    /// Started after it.
    pub(crate) following: Option<Following>,
}

/// The supervisor. Stopping it ends every actor of the replica.
pub(crate) struct Root;

impl Actor for Root {
    type Msg = ();
    type State = Roles;
    type Arguments = Roles;

    async fn pre_start(&self, myself: ActorRef<()>, roles: Roles) -> Result<Roles, ActorProcessingErr> {
        start(&roles.registry, &myself).await?;
        start(&roles.catalog, &myself).await?;
        if let Some(configuration) = &roles.configuration {
            start(configuration, &myself).await?;
        }
        Ok(roles)
    }

    async fn handle(&self, myself: ActorRef<()>, (): (), roles: &mut Roles) -> Result<(), ActorProcessingErr> {
        if let Some(life) = &roles.life {
            start(&life.keeper, &myself).await?;
        }
        if let Some(following) = &roles.following {
            start(&(following.group.clone(), following.poller.role().clone()), &myself).await?;
            for (group, notifier) in &following.notifiers {
                start(&(group.clone(), notifier.role().clone()), &myself).await?;
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<()>,
        event: SupervisionEvent,
        roles: &mut Roles,
    ) -> Result<(), ActorProcessingErr> {
        let SupervisionEvent::ActorFailed(failed, error) = event else { return Ok(()) };
        tracing::error!(actor = %failed.get_id(), %error, "a role failed and is started anew");
        if roles.registry.1.is(failed.get_id()) {
            start(&roles.registry, &myself).await?;
        } else if roles.catalog.1.is(failed.get_id()) {
            start(&roles.catalog, &myself).await?;
        } else if let Some(configuration) = &roles.configuration
            && configuration.1.is(failed.get_id())
        {
            start(configuration, &myself).await?;
        } else if let Some(life) = &roles.life
            && life.keeper.1.is(failed.get_id())
        {
            start(&life.keeper, &myself).await?;
        } else if let Some(following) = &roles.following {
            if following.poller.role().is(failed.get_id()) {
                start(&(following.group.clone(), following.poller.role().clone()), &myself).await?;
            } else {
                for (group, notifier) in &following.notifiers {
                    if notifier.role().is(failed.get_id()) {
                        start(&(group.clone(), notifier.role().clone()), &myself).await?;
                    }
                }
            }
        }
        Ok(())
    }
}

async fn start<A>((actor, role): &(A, Role<A::Msg>), root: &ActorRef<()>) -> Result<(), SpawnErr>
where
    A: Actor<Arguments = ()> + Clone,
{
    let (started, _) = Actor::spawn_linked(None, actor.clone(), (), root.get_cell()).await?;
    role.fill(started);
    Ok(())
}
