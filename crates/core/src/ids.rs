//! Names of things: servers, callers, sessions, replicas.
//!
//! Each is its own type, so that a thread id can never stand where a user id is meant. All are cheap to clone and
//! safe to print; none holds a secret.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps the text as it is; the caller has checked it where a rule exists.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
    };
}

text_id! {
    /// A key of `mcpServers` (contract 1.2).
    ServerName
}
text_id! {
    /// The user a call is made for. `default` when the caller names none (contract 4.1).
    UserId
}
text_id! {
    /// The conversation a call belongs to. `default` when the caller names none (contract 4.1).
    ThreadId
}
text_id! {
    /// One life of one replica: a new UUID at each start.
    BootId
}
text_id! {
    /// Which tools there are, with their schemas: 16 hexadecimal digits (contract 9.3).
    CatalogHash
}
text_id! {
    /// One request of one caller, as it appears in answers, logs and spans.
    RequestId
}

/// The user or thread of a caller that named none (contract 4.1).
pub const DEFAULT_SCOPE_PART: &str = "default";

/// Whose state a session holds: one user in one thread, written `user:thread` (contract 4.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Scope {
    /// The user.
    pub user: UserId,
    /// The thread of that user.
    pub thread: ThreadId,
}

impl Scope {
    /// The scope of these two, each `default` when absent or empty.
    pub fn new(user: Option<&str>, thread: Option<&str>) -> Self {
        let part = |p: Option<&str>| p.filter(|p| !p.is_empty()).unwrap_or(DEFAULT_SCOPE_PART).to_owned();
        Self { user: UserId::new(part(user)), thread: ThreadId::new(part(thread)) }
    }
}

impl Scope {
    /// The scope of the catalogue's own sessions, which no caller can name: both parts are empty.
    pub fn catalog() -> Self {
        Self { user: UserId::new(""), thread: ThreadId::new("") }
    }

    /// Whether this is the catalogue's own scope.
    pub fn is_catalog(&self) -> bool {
        self.user.as_str().is_empty() && self.thread.as_str().is_empty()
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.user, self.thread)
    }
}

/// What a stateful session is found by: it lives once for each key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct SessionKey {
    /// The server the session is with.
    pub server: ServerName,
    /// Whose state it holds.
    pub scope: Scope,
    /// Which credentials of the request it was opened with; `None` = only those that server and user decide.
    #[serde(skip)]
    pub credential: Option<CredentialDigest>,
}

/// Tells credentials apart without holding them: a keyed hash, which means nothing outside this process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CredentialDigest(pub [u8; 16]);

impl fmt::Debug for CredentialDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialDigest")
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.server, self.scope)
    }
}

/// Which life of a session key this is, counted from 1. Only grows (invariant L2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_or_empty_part_of_a_scope_is_default() {
        // Contract 4.1, scope.
        assert_eq!(Scope::new(None, Some("")).to_string(), "default:default");
        assert_eq!(Scope::new(Some("ann"), Some("t1")).to_string(), "ann:t1");
    }
}
