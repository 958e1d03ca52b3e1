//! The name of a session's row in the store: the same on every replica, and nothing can be read from it.

use sha2::{Digest as _, Sha256};

use crate::ids::SessionKey;

/// Names one session in the whole cluster (architecture.md §10, session key).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionRow(pub [u8; 32]);

impl SessionRow {
    /// The row of `key`. The server's name tells deployment and personal servers apart: those of users have names of
    /// their own.
    pub fn of(key: &SessionKey) -> Self {
        let mut hash = Sha256::new();
        for part in [key.server.as_str(), key.scope.user.as_str(), key.scope.thread.as_str()] {
            // The length first, so that no two keys are written alike.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        if let Some(credential) = key.credential {
            hash.update(credential.0);
        }
        Self(hash.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CredentialDigest, Scope, ServerName};

    fn key(server: &str, user: &str, thread: &str) -> SessionKey {
        SessionKey { server: ServerName::from(server), scope: Scope::new(Some(user), Some(thread)), credential: None }
    }

    #[test]
    fn no_two_keys_have_one_row() {
        // Invariant P1.
        let whole = key("s", "ann", "t");
        let rows = [
            whole.clone(),
            key("sa", "nn", "t"),
            key("s", "annt", "x"),
            key("s", "t", "ann"),
            SessionKey { credential: Some(CredentialDigest([0; 16])), ..whole.clone() },
        ]
        .map(|key| SessionRow::of(&key));
        for (at, row) in rows.iter().enumerate() {
            assert!(!rows[at + 1..].contains(row), "{at}");
        }
        assert_eq!(SessionRow::of(&whole), rows[0]);
    }
}
