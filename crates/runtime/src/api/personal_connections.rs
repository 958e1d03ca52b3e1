//! List, show, put and delete the personal connections of a user: by that user, or an agent that acts for it.

use std::sync::Arc;

use caribou_core::config::IfMatch;
use caribou_core::failure::Code;
use caribou_core::ids::UserId;
use serde_json::{Map, Value};

use crate::Runtime;
use crate::audit::Entry;
use crate::caller::Caller;
use crate::error::VerbError;
use crate::personal::{ConnectionView, ConnectionsView, Users};

impl Runtime {
    /// All personal connections of `user`, by name, secrets masked.
    ///
    /// # Errors
    /// `denied`: the caller may not act for that user. `unavailable`: this replica keeps none, or they cannot be read.
    pub async fn personal_connections(&self, caller: &Caller, user: &UserId) -> Result<ConnectionsView, VerbError> {
        self.users_of(caller, user)?.read(user).await
    }

    /// One of them.
    ///
    /// # Errors
    /// As [`Runtime::personal_connections`]; `not_found`: the user has none of that name.
    pub async fn personal_connection(
        &self,
        caller: &Caller,
        user: &UserId,
        name: &str,
    ) -> Result<ConnectionView, VerbError> {
        self.users_of(caller, user)?.read_one(user, name).await
    }

    /// Makes or replaces one, whole: a field that is left out is reset, and only a secret sent as `***` is kept. In
    /// force when it returns, on this replica; a second later on the others. Runs to its end whoever still waits.
    ///
    /// # Errors
    /// As [`Runtime::personal_connections`]. `invalid`: the definition would not load, or may not be started.
    /// `conflict`: the condition does not hold, or the user has as many as it may. Nothing was stored then.
    /// `outcome_unknown`: it may have been.
    pub async fn put_personal_connection(
        &self,
        caller: &Caller,
        user: &UserId,
        name: &str,
        definition: Map<String, Value>,
        condition: IfMatch,
    ) -> Result<ConnectionView, VerbError> {
        let entry = Entry { user: user.clone(), ..Entry::new("put_connection", caller) };
        let work = async {
            let (users, user, name) = (self.users_of(caller, user)?.clone(), user.clone(), name.to_owned());
            to_its_end(async move { users.put(&user, &name, &definition, &condition).await }).await
        };
        self.audit.around(entry, work).await
    }

    /// Deletes one; its sessions are closed.
    ///
    /// # Errors
    /// As [`Runtime::put_personal_connection`]; `not_found`: the user has none of that name.
    pub async fn delete_personal_connection(
        &self,
        caller: &Caller,
        user: &UserId,
        name: &str,
        condition: IfMatch,
    ) -> Result<(), VerbError> {
        let entry = Entry { user: user.clone(), ..Entry::new("delete_connection", caller) };
        let work = async {
            let (users, user, name) = (self.users_of(caller, user)?.clone(), user.clone(), name.to_owned());
            to_its_end(async move { users.delete(&user, &name, &condition).await }).await
        };
        self.audit.around(entry, work).await
    }

    fn users_of(&self, caller: &Caller, user: &UserId) -> Result<&Arc<Users>, VerbError> {
        caller.principal.acts_for(Some(user.as_str()))?;
        let missing = || {
            let detail = "this replica keeps no personal connections: it has no database, or no credentials key";
            VerbError::new(Code::Unavailable, detail)
        };
        self.users.as_ref().ok_or_else(missing)
    }
}

/// What was stored must also be put in force, even when nobody waits for the answer any more.
async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, VerbError>> + Send + 'static,
) -> Result<T, VerbError> {
    tokio::spawn(work).await.unwrap_or_else(|_| Err(VerbError::fault()))
}
