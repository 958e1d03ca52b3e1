//! What a system prompt says of the tools: deferred names and routing hints (contract 9.2, 9.3).

use crate::Runtime;
use crate::caller::Caller;
use crate::error::VerbError;

impl Runtime {
    /// The sections `<available-deferred-tools>` and `<mcp_routing_hints>`, in this order, of the tools that the
    /// caller may use; empty when there is nothing to say.
    ///
    /// # Errors
    /// Every enabled server failed; the next call tries again.
    pub async fn prompt_section(&self, caller: &Caller) -> Result<String, VerbError> {
        let sight = self.sight(&caller.principal.user).await;
        let snapshot = sight.list().await?;
        Ok(sight.offer(&snapshot).prompt_section(caller))
    }
}
