//! The users whose personal connections are held: found, looked after, and let go of.
//!
//! At most a thousand at once (invariant B1). Somebody who has a call in flight is never let go of, so that no call
//! loses its session to another user's first request; when all have one, a further user is told that there is no room.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::failure::Code;
use caribou_core::ids::UserId;
use caribou_ports::store::StoreError;
use lru::LruCache;
use ractor::{ActorCell, ActorRef};
use tokio::sync::oneshot;

use super::user::User;
use crate::catalog::{Catalog, CatalogActor};
use crate::error::VerbError;
use crate::oauth::Chains;
use crate::outside::Personal;
use crate::session::RegistryMessage;

/// What the catalogues of users share with the deployment's, and under whom their actors live.
pub(super) struct Ground {
    pub(super) personal: Personal,
    pub(super) actor: CatalogActor,
    pub(super) catalog: Catalog,
    pub(super) chains: Chains,
    pub(super) root: ActorCell,
}

impl Ground {
    /// Closes what is in force no longer. Resolves once no call is admitted there.
    pub(super) async fn supersede(&self) {
        let (done, superseded) = oneshot::channel();
        let _ = self.actor.router.registry.cast(RegistryMessage::Supersede { done });
        let _ = tokio::time::timeout(bounds::ROLE_ANSWER, superseded).await;
    }
}

/// All users that are held.
pub(crate) struct Users {
    pub(super) ground: Ground,
    held: Mutex<LruCache<UserId, Arc<User>>>,
}

impl Users {
    /// Nobody yet. `actor` and `catalog` are the deployment's.
    pub(crate) fn new(
        personal: Personal,
        actor: CatalogActor,
        catalog: &Catalog,
        chains: Chains,
        root: &ActorRef<()>,
    ) -> Arc<Self> {
        let ground = Ground { personal, actor, catalog: catalog.clone(), chains, root: root.get_cell() };
        let most = NonZeroUsize::new(bounds::MAX_PERSONAL_USERS).unwrap_or(NonZeroUsize::MIN);
        Arc::new(Self { ground, held: Mutex::new(LruCache::new(most)) })
    }

    /// This user, as it is stored now or was a second ago. While it is held on to, it is not let go of.
    ///
    /// # Errors
    /// There is no room, or the user was never looked up and the store cannot be read.
    pub(crate) async fn of(&self, id: &UserId) -> Result<Arc<User>, VerbError> {
        let user = self.find(id)?;
        user.look(&self.ground).await.map_err(unread)?;
        Ok(user)
    }

    /// Something of this user's was changed elsewhere: its next request looks again, however soon it comes.
    pub(crate) fn look_again(&self, id: &UserId) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(user) = held.peek(id) {
            user.look_again();
        }
    }

    fn find(&self, id: &UserId) -> Result<Arc<User>, VerbError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(user) = held.get(id) {
            return Ok(user.clone());
        }
        let idle = self.ground.catalog.options.session_idle;
        let is_left = |user: &Arc<User>| Arc::strong_count(user) == 1;
        while let Some((tired, _)) = held.peek_lru().filter(|(_, user)| is_left(user) && user.idle_for() >= idle) {
            let tired = tired.clone();
            self.let_go(held.pop(&tired));
        }
        if held.len() >= held.cap().get() {
            let oldest = held.iter().rev().find(|(_, user)| is_left(user)).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else { return Err(no_room()) };
            self.let_go(held.pop(&oldest));
        }
        let user = Arc::new(User::new(id.clone(), &self.ground));
        held.put(id.clone(), user.clone());
        Ok(user)
    }

    /// Takes a user's servers out of force; their sessions close in the background.
    fn let_go(&self, user: Option<Arc<User>>) {
        let Some(user) = user else { return };
        user.leave(&self.ground);
        let (done, _) = oneshot::channel();
        let _ = self.ground.actor.router.registry.cast(RegistryMessage::Supersede { done });
    }
}

fn no_room() -> VerbError {
    VerbError {
        retry_after: Some(Duration::from_secs(1)),
        ..VerbError::new(
            Code::Busy,
            "this replica serves the personal connections of as many users as it may; try again",
        )
    }
}

/// The error of a look that failed. Looking changes nothing, so it may be made again.
pub(super) fn unread(error: StoreError) -> VerbError {
    VerbError::new(Code::Unavailable, format!("personal connections cannot be read: {error}"))
}
