//! What a system prompt says of the tools: deferred names and routing hints (contract 9.2, 9.3).

use crate::Runtime;
use crate::error::VerbError;

impl Runtime {
    /// The sections `<available-deferred-tools>` and `<mcp_routing_hints>`, in this order; empty when there is nothing
    /// to say.
    ///
    /// # Errors
    /// Every enabled server failed; the next call tries again.
    pub async fn prompt_section(&self) -> Result<String, VerbError> {
        let snapshot = self.catalog.list().await?;
        Ok(self.catalog.offer(&snapshot).prompt_section())
    }
}
