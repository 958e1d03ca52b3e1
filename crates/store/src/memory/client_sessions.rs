//! Sessions that clients opened with us.

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use caribou_ports::BoxFuture;
use caribou_ports::store::{ClientSession, ClientSessions, StoreError};
use tokio::time::Instant;

use super::Memory;

/// All sessions by their names, with the time of the last use.
pub(super) type Kept = HashMap<String, (ClientSession, Instant)>;

impl Memory {
    fn of_clients(&self) -> MutexGuard<'_, Kept> {
        self.client_sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessions for Memory {
    fn begin_client_session(&self, session: ClientSession, most: u32) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut kept = self.of_clients();
        let has_room = kept.len() < most as usize && !kept.contains_key(&session.id);
        if has_room {
            kept.insert(session.id.clone(), (session, Instant::now()));
        }
        Box::pin(async move { Ok(has_room) })
    }

    fn use_client_session(
        &self,
        id: String,
        idle: Duration,
    ) -> BoxFuture<'_, Result<Option<ClientSession>, StoreError>> {
        let mut kept = self.of_clients();
        let found = kept.get_mut(&id).filter(|(_, used)| used.elapsed() <= idle).map(|(session, used)| {
            *used = Instant::now();
            session.clone()
        });
        Box::pin(async move { Ok(found) })
    }

    fn agree_with_client(
        &self,
        id: String,
        version: String,
        capabilities: String,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut kept = self.of_clients();
        let noted =
            kept.get_mut(&id).map(|(session, _)| (session.version, session.capabilities) = (version, capabilities));
        let noted = noted.is_some();
        Box::pin(async move { Ok(noted) })
    }

    fn set_client_log_level(&self, id: String, level: String) -> BoxFuture<'_, Result<bool, StoreError>> {
        let noted = self.of_clients().get_mut(&id).map(|(session, _)| session.log_level = Some(level)).is_some();
        Box::pin(async move { Ok(noted) })
    }

    fn subscribe_client(
        &self,
        id: String,
        uri: String,
        is_wanted: bool,
        most_chars: u32,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut kept = self.of_clients();
        let noted = kept.get_mut(&id).is_some_and(|(session, _)| {
            let others = session.subscriptions.iter().filter(|each| **each != uri).cloned();
            let all: Vec<String> = others.chain(is_wanted.then_some(uri.clone())).collect();
            // Each stands between two line ends.
            let fits = all.iter().map(|uri| uri.chars().count() + 2).sum::<usize>() <= most_chars as usize;
            if fits {
                session.subscriptions = all;
            }
            fits
        });
        Box::pin(async move { Ok(noted) })
    }

    fn end_client_session(&self, id: String) -> BoxFuture<'_, Result<bool, StoreError>> {
        let ended = self.of_clients().remove(&id).is_some();
        Box::pin(async move { Ok(ended) })
    }

    fn forget_client_sessions(&self, idle: Duration, limit: u32) -> BoxFuture<'_, Result<u32, StoreError>> {
        let mut kept = self.of_clients();
        let old = kept.iter().filter(|(_, (_, used))| used.elapsed() > idle).map(|(id, _)| id.clone());
        let old: Vec<String> = old.take(limit as usize).collect();
        for id in &old {
            kept.remove(id);
        }
        let forgotten = u32::try_from(old.len()).unwrap_or(limit);
        Box::pin(async move { Ok(forgotten) })
    }
}
