//! Read who did what (architecture.md §2).

use caribou_core::bounds::MAX_AUDIT_PAGE;
use caribou_core::failure::Code;
use caribou_ports::store::{AuditFilter, Party, StoredAuditRow};

use crate::Runtime;
use crate::caller::Caller;
use crate::error::VerbError;

impl Runtime {
    /// Rows of the audit log that match, the newest first, at most `limit` and at most `MAX_AUDIT_PAGE`. Admins see
    /// all; others what they did, and what was done for them (invariant P1). A row is there soon after its call, not
    /// with it.
    ///
    /// # Errors
    /// `not_found`: this replica keeps no audit log. `unavailable`: the store cannot be asked now.
    pub async fn read_audit(
        &self,
        caller: &Caller,
        filter: AuditFilter,
        limit: u32,
    ) -> Result<Vec<StoredAuditRow>, VerbError> {
        let Some(store) = self.audit.store() else {
            return Err(VerbError::new(Code::NotFound, "this replica keeps no audit log; see `audit.enabled`"));
        };
        let all = caller.principal.roles.admin;
        let party = || Party { principal: caller.principal.id.to_string(), user: caller.principal.user.to_string() };
        let filter = if all { filter } else { AuditFilter { party: Some(party()), ..filter } };
        let read = store.read(filter, limit.min(MAX_AUDIT_PAGE)).await;
        read.map_err(|error| VerbError::new(Code::Unavailable, format!("the audit log cannot be read: {error}")))
    }
}
