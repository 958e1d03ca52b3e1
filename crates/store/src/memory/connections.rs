//! Personal connections by user and name, and how often each user's were changed.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use caribou_core::ids::UserId;
use caribou_ports::BoxFuture;
use caribou_ports::store::{Connections, Expected, Put, StoreError, StoredConnection};

use super::Memory;

/// All of everybody.
#[derive(Debug, Default)]
pub(super) struct Kept {
    connections: BTreeMap<(String, String), StoredConnection>,
    revisions: BTreeMap<UserId, i64>,
}

impl Kept {
    fn stands(&self, key: &(String, String)) -> Expected {
        self.connections.get(key).map_or(Expected::Nothing, |connection| Expected::Exactly {
            runtime_name: connection.runtime_name.clone(),
            enabled: connection.enabled,
        })
    }

    fn of_user(&self, user: &UserId) -> Vec<StoredConnection> {
        self.connections.values().filter(|connection| connection.user == *user).cloned().collect()
    }

    fn put(&mut self, connection: StoredConnection, expected: &Expected, at_most: u32) -> Put {
        let key = key(&connection.user, &connection.name);
        if self.stands(&key) != *expected {
            return Put::Unexpected;
        }
        if *expected == Expected::Nothing && self.of_user(&connection.user).len() >= at_most as usize {
            return Put::Full;
        }
        *self.revisions.entry(connection.user.clone()).or_default() += 1;
        self.connections.insert(key, connection);
        Put::Stored
    }

    fn delete(&mut self, user: &UserId, name: &str, expected: &Expected) -> bool {
        let key = key(user, name);
        if self.stands(&key) != *expected || self.connections.remove(&key).is_none() {
            return false;
        }
        *self.revisions.entry(user.clone()).or_default() += 1;
        true
    }

    fn reseal(&mut self, before: &StoredConnection, sealed: Vec<u8>) -> bool {
        let found = self.connections.get_mut(&key(&before.user, &before.name));
        match found.filter(|found| found.sealed == before.sealed) {
            Some(found) => {
                found.sealed = sealed;
                true
            }
            None => false,
        }
    }
}

fn key(user: &UserId, name: &str) -> (String, String) {
    (user.as_str().to_owned(), name.to_owned())
}

impl Memory {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connections for Memory {
    fn put(
        &self,
        connection: StoredConnection,
        expected: Expected,
        at_most: u32,
    ) -> BoxFuture<'_, Result<Put, StoreError>> {
        let put = self.kept().put(connection, &expected, at_most);
        Box::pin(async move { Ok(put) })
    }

    fn delete(&self, user: UserId, name: String, expected: Expected) -> BoxFuture<'_, Result<bool, StoreError>> {
        let deleted = self.kept().delete(&user, &name, &expected);
        Box::pin(async move { Ok(deleted) })
    }

    fn of_user(&self, user: UserId) -> BoxFuture<'_, Result<Vec<StoredConnection>, StoreError>> {
        let found = self.kept().of_user(&user);
        Box::pin(async move { Ok(found) })
    }

    fn page(&self, after: (String, String), limit: u32) -> BoxFuture<'_, Result<Vec<StoredConnection>, StoreError>> {
        let kept = self.kept();
        let later = kept.connections.iter().filter(|(key, _)| **key > after).map(|(_, connection)| connection.clone());
        let page = later.take(limit as usize).collect();
        Box::pin(async move { Ok(page) })
    }

    fn reseal(&self, connection: StoredConnection, sealed: Vec<u8>) -> BoxFuture<'_, Result<bool, StoreError>> {
        let resealed = self.kept().reseal(&connection, sealed);
        Box::pin(async move { Ok(resealed) })
    }

    fn revision(&self, user: UserId) -> BoxFuture<'_, Result<i64, StoreError>> {
        let revision = self.kept().revisions.get(&user).copied().unwrap_or(0);
        Box::pin(async move { Ok(revision) })
    }
}
