//! Close the sessions of one user in one thread.

use caribou_core::ids::{Scope, ServerName};

use crate::Runtime;
use crate::audit::Entry;
use crate::caller::Caller;
use crate::error::VerbError;

impl Runtime {
    /// Closes the sessions of `scope`, of one server if named, those being opened included. Answers how many when
    /// nothing is left of them; calls in flight in them fail.
    ///
    /// # Errors
    /// The caller may not act for that user. Or they take longer than a few seconds to go; they accept no call any
    /// more all the same.
    pub async fn close_sessions(
        &self,
        caller: &Caller,
        scope: &Scope,
        server: Option<&ServerName>,
    ) -> Result<usize, VerbError> {
        let mut entry = Entry::new("close_sessions", caller).within(scope);
        entry.server = server.cloned();
        let work = async {
            caller.principal.acts_for(Some(scope.user.as_str()))?;
            self.router.close(scope, server).await
        };
        self.audit.around(entry, work).await
    }
}
