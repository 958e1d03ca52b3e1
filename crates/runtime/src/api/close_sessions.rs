//! Close the sessions of one user in one thread.

use caribou_core::ids::{Scope, ServerName};

use crate::Runtime;
use crate::error::VerbError;

impl Runtime {
    /// Closes the sessions of `scope`, of one server if named, those being opened included. Answers how many when
    /// nothing is left of them; calls in flight in them fail.
    ///
    /// # Errors
    /// They take longer than a few seconds to go; they accept no call any more all the same.
    pub async fn close_sessions(&self, scope: &Scope, server: Option<&ServerName>) -> Result<usize, VerbError> {
        self.router.close(scope, server).await
    }
}
