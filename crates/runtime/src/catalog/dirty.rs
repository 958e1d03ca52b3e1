//! Whose tool list changed upstream since it was fetched.
//!
//! A burst of notices is one mark, since a mark is a state and not a message; a notice during a fetch marks again and
//! causes one more. Bounded by the number of servers: the marks of those that are gone go with them. Shared by the
//! catalogues of the deployment and of users, each of which forgets its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use caribou_core::config::personal::is_runtime_name;
use caribou_core::ids::ServerName;
use tokio::sync::watch;

use super::changes::Changes;
use crate::session::Handle;

/// The marks.
#[derive(Default)]
pub(crate) struct DirtyLists {
    any: AtomicBool,
    marks: Mutex<HashMap<ServerName, Weak<Handle>>>,
    /// Counts the marks that were set for servers of the deployment.
    marked: watch::Sender<u64>,
    /// What clients are told of besides.
    pub(crate) changes: Changes,
}

impl DirtyLists {
    /// The session behind `handle` said that its server's list changed; it is the one to ask, since a list may differ
    /// from process to process. False when that says nothing.
    pub(crate) fn mark(&self, handle: &Arc<Handle>) -> bool {
        // A child of the catalogue lives for one listing: what it says was said before or during that listing.
        if handle.key.scope.is_catalog() && handle.server.transport.owns_process() {
            return false;
        }
        self.set(handle.server.name.clone(), Arc::downgrade(handle));
        true
    }

    /// Somebody asks for a fresh list, from a fresh session.
    pub(crate) fn mark_server(&self, server: &ServerName) {
        self.set(server.clone(), Weak::new());
    }

    fn set(&self, server: ServerName, handle: Weak<Handle>) {
        let is_personal = is_runtime_name(&server);
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).insert(server, handle);
        self.any.store(true, Ordering::Release);
        // What a user's own server has is told to that user.
        if !is_personal {
            self.marked.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    /// Tells of every mark of a server of the deployment from now on.
    pub(crate) fn marked(&self) -> watch::Receiver<u64> {
        self.marked.subscribe()
    }

    /// Whether there is any mark at all; costs one load.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    pub(crate) fn is_dirty(&self, server: &ServerName) -> bool {
        self.any() && self.marks.lock().unwrap_or_else(PoisonError::into_inner).contains_key(server)
    }

    /// Forgets these servers.
    pub(crate) fn forget<'s>(&self, gone: impl IntoIterator<Item = &'s ServerName>) {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        for server in gone {
            marks.remove(server);
        }
        self.any.store(!marks.is_empty(), Ordering::Release);
    }

    /// Takes the mark of `server` off, before its list is fetched.
    pub(crate) fn take(&self, server: &ServerName) -> Option<Arc<Handle>> {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = marks.remove(server);
        self.any.store(!marks.is_empty(), Ordering::Release);
        handle?.upgrade()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_servers_that_are_gone_are_forgotten() {
        let (dirty, kept, gone) = (DirtyLists::default(), ServerName::from("kept"), ServerName::from("gone"));
        dirty.mark_server(&kept);
        dirty.mark_server(&gone);
        dirty.forget([&gone]);
        assert!(dirty.is_dirty(&kept) && !dirty.is_dirty(&gone));
        dirty.forget([&kept]);
        assert!(!dirty.any());
    }
}
