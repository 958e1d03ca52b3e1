//! The port: which replicas there are ways to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caribou_core::ids::{BootId, Epoch, Scope, ServerName};
use caribou_ports::BoxFuture;
use caribou_ports::peers::{ClientWord, Nudge, OpenedThere, PeerAddress, PeerError, Peers, Wanted};
use tokio::time::{Instant, timeout_at};

use super::link::Link;
use super::options::PeerOptions;
use super::session::SessionThere;
use crate::peer::{convert, status};

/// Ways at once, far beyond any cluster: lives that ended are forgotten when the living are told.
const MAX_LINKS: usize = 1_024;

/// The way to the other replicas.
pub struct PeerClient {
    options: Arc<PeerOptions>,
    links: Mutex<HashMap<BootId, Arc<Link>>>,
}

impl PeerClient {
    /// Connects to nobody yet.
    pub fn new(options: PeerOptions) -> Self {
        Self { options: Arc::new(options), links: Mutex::default() }
    }

    /// Connects to a replica as a request would and lets it say who it is: address, certificate and secret are right,
    /// and it is the life that is meant. The version of Caribou there.
    ///
    /// # Errors
    /// Which of these is not so.
    pub async fn greet(&self, peer: PeerAddress) -> Result<String, PeerError> {
        Ok(self.link(peer)?.control().await?.version().to_owned())
    }

    fn links(&self) -> MutexGuard<'_, HashMap<BootId, Arc<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way to this life; the one that there is, if it leads to the same address.
    fn link(&self, peer: PeerAddress) -> Result<Arc<Link>, PeerError> {
        let mut links = self.links();
        if let Some(link) = links.get(&peer.boot).filter(|link| link.peer == peer) {
            return Ok(link.clone());
        }
        if links.len() >= MAX_LINKS && !links.contains_key(&peer.boot) {
            return Err(PeerError::Unreachable(format!("there are ways to {MAX_LINKS} replicas already")));
        }
        let link = Arc::new(Link::to(peer, self.options.clone()));
        if let Some(former) = links.insert(link.peer.boot.clone(), link.clone()) {
            former.given_up.cancel();
        }
        Ok(link)
    }
}

impl Peers for PeerClient {
    fn open(&self, peer: PeerAddress, wanted: Wanted) -> BoxFuture<'static, Result<OpenedThere, PeerError>> {
        let link = self.link(peer);
        Box::pin(async move {
            let link = link?;
            let boot = link.peer.boot.clone();
            let late = |_| PeerError::Unreachable(format!("{boot} did not open the session in time"));
            let deadline = Instant::now() + wanted.within;
            timeout_at(deadline, open(link, wanted, deadline)).await.map_err(late)?
        })
    }

    fn close_sessions(
        &self,
        peer: PeerAddress,
        scope: Scope,
        server: Option<ServerName>,
    ) -> BoxFuture<'static, Result<u64, PeerError>> {
        let link = self.link(peer);
        Box::pin(async move { link?.close_sessions(scope, server).await })
    }

    fn tell(&self, peer: PeerAddress, word: ClientWord) -> BoxFuture<'static, Result<bool, PeerError>> {
        let link = self.link(peer);
        Box::pin(async move { link?.tell(word).await })
    }

    fn nudge(&self, peer: PeerAddress, about: Nudge) {
        if let Ok(link) = self.link(peer) {
            link.nudge(about);
        }
    }

    fn keep(&self, living: &[BootId]) {
        self.links().retain(|boot, link| {
            let lives = living.contains(boot);
            if !lives {
                link.given_up.cancel();
            }
            lives
        });
    }
}

async fn open(link: Arc<Link>, wanted: Wanted, deadline: Instant) -> Result<OpenedThere, PeerError> {
    let connection = link.control().await?;
    let left = deadline.saturating_duration_since(Instant::now()).saturating_sub(super::exchange::HOP);
    let request = convert::open_request(&link.peer.boot, &wanted, left, 1);
    let opened = connection.client().open(request).await.map_err(|status| {
        let error = status::peer_error(&status);
        if matches!(error, PeerError::Unreachable(_)) {
            connection.distrust();
        }
        error
    });
    let opened = opened?.into_inner();
    let facts = convert::facts(opened.facts).map_err(|error| PeerError::Unreachable(error.to_string()))?;
    let epoch = Epoch(opened.epoch);
    let session = Arc::new(SessionThere::new(link, wanted.key, epoch, facts));
    Ok(OpenedThere { session, epoch })
}
