//! What one user sees: the deployment's servers, and its own behind them.
//!
//! A tool of the deployment is found without a look at anything personal, so that nobody's own connections, nor a
//! store that is away, stand between a caller and the deployment's tools.

use std::sync::Arc;

use caribou_core::failure::Code;
use caribou_core::ids::{ServerName, UserId};

use super::user::User;
use crate::Runtime;
use crate::catalog::{Catalog, EntryState, Offer, Snapshot, Target};
use crate::error::VerbError;

/// What failures to read personal connections are listed under.
const PERSONAL: &str = "personal";

/// What a user sees.
pub(crate) struct Sight<'r> {
    catalog: &'r Catalog,
    /// `None` = there are no personal connections in this replica, or they cannot be read.
    own: Option<Arc<User>>,
    /// Why they cannot be read.
    unread: Option<VerbError>,
}

/// Where a name leads. Kept as long as the call lasts: what it holds is not let go of meanwhile.
pub(crate) struct Found {
    pub(crate) target: Target,
    _own: Option<Arc<User>>,
}

impl Runtime {
    /// What this user sees now.
    pub(crate) async fn sight(&self, user: &UserId) -> Sight<'_> {
        let (own, unread) = match &self.users {
            None => (None, None),
            Some(users) => match users.of(user).await {
                Ok(own) => (Some(own), None),
                Err(error) => (None, Some(error)),
            },
        };
        Sight { catalog: &self.catalog, own, unread }
    }

    /// Where a visible name leads for this user.
    pub(crate) async fn find_tool(&self, name: &str, user: &UserId) -> Result<Found, VerbError> {
        let error = match self.catalog.find(name).await {
            Ok(target) => return Ok(Found { target, _own: None }),
            Err(error) => error,
        };
        let Sight { own, unread, .. } = self.sight(user).await;
        let Some(own) = own else { return Err(unread.unwrap_or(error)) };
        match own.catalog.find(name).await {
            Ok(target) => Ok(Found { target, _own: Some(own) }),
            Err(own) if own.code == Code::NotFound => Err(error),
            Err(own) => Err(own),
        }
    }
}

impl Sight<'_> {
    /// All tools, waited for as the catalogue waits.
    ///
    /// # Errors
    /// Every enabled server failed, the user's own too.
    pub(crate) async fn list(&self) -> Result<Arc<Snapshot>, VerbError> {
        let Some(own) = &self.own else { return Ok(self.noted(self.catalog.list().await?)) };
        let (deployment, listed) = tokio::join!(self.catalog.list(), own.catalog.list());
        let has_ready =
            |snapshot: &Snapshot| snapshot.entries.iter().any(|entry| matches!(entry.state, EntryState::Ready));
        match deployment {
            Ok(deployment) => Ok(own.merged(&deployment)),
            Err(_) if listed.is_ok_and(|own| has_ready(&own)) => Ok(own.merged(&self.catalog.snapshot())),
            Err(error) => Err(error),
        }
    }

    /// What is known once `server` was discovered: one of the deployment, or one that the user brought.
    pub(crate) async fn discovered(&self, server: &ServerName) -> Arc<Snapshot> {
        let deployment = self.catalog.discovered(server).await;
        let is_there = deployment.entries.iter().any(|entry| entry.name == *server);
        match &self.own {
            Some(own) if !is_there => own.catalog.discovered(server).await,
            _ => deployment,
        }
    }

    /// What is known, without waiting.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        let deployment = self.catalog.snapshot();
        self.own.as_ref().map_or(deployment.clone(), |own| own.merged(&deployment))
    }

    /// What is offered of `snapshot`.
    pub(crate) fn offer<'s>(&self, snapshot: &'s Snapshot) -> &'s Offer {
        self.catalog.offer(snapshot)
    }

    /// The deployment's tools with the reason why there are no others.
    fn noted(&self, deployment: Arc<Snapshot>) -> Arc<Snapshot> {
        let Some(error) = &self.unread else { return deployment };
        let mut noted = Snapshot::of(deployment.entries.clone());
        noted.listed.failed.push((ServerName::from(PERSONAL), error.detail.clone()));
        Arc::new(noted)
    }
}
