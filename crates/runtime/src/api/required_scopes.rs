//! Which OAuth scopes there are to ask an issuer for.

use caribou_core::ids::ServerName;

use crate::Runtime;

impl Runtime {
    /// The scopes that uses of the enabled servers require, or of one of them: each once, sorted. Of the deployment's own
    /// servers only: what a user brought is told to nobody else (invariant P1). Of a server that there is not: none.
    pub async fn required_scopes(&self, server: Option<&ServerName>) -> Vec<String> {
        let snapshot = self.catalog.current().await;
        let entries = snapshot.entries.iter().filter(|entry| server.is_none_or(|server| entry.name == *server));
        let enabled = entries.filter_map(|entry| entry.enabled());
        let mut scopes: Vec<String> = enabled.flat_map(|server| server.all_scopes()).cloned().collect();
        scopes.sort_unstable();
        scopes.dedup();
        scopes
    }
}
