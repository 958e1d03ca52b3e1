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
    /// A volume that files of threads are on, where replicas do not share one: a UUID, made with the volume.
    VolumeId
}
text_id! {
    /// Which tools there are, with their schemas: 16 hexadecimal digits (contract 9.3).
    CatalogHash
}
text_id! {
    /// One request of one caller, as it appears in answers, logs and spans.
    RequestId
}

/// A longer request id of a caller is not taken over: ids are copied into every log line and span.
const LONGEST_REQUEST_ID: usize = 128;

impl RequestId {
    /// The id that a caller gave its request, if it is fit to be printed.
    pub fn from_caller(given: &[u8]) -> Option<Self> {
        let sane = (1..=LONGEST_REQUEST_ID).contains(&given.len()) && given.iter().all(u8::is_ascii_graphic);
        std::str::from_utf8(given).ok().filter(|_| sane).map(Self::new)
    }
}

/// The user or thread of a caller that named none (contract 4.1).
pub const DEFAULT_SCOPE_PART: &str = "default";

/// The longest thread id (contract 2.1).
const LONGEST_THREAD: usize = 64;

/// The longest user id in bytes. Ours: it stands in markers of child processes, in logs and in keys.
const LONGEST_USER: usize = 256;

/// Why a text is no part of a scope. Never repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// A user that is too long, or holds a control character, which could not stand in the environment of a child.
    #[error("`user_id` must have at most 256 bytes and no control characters")]
    User,
    /// A thread that is none by contract 2.1.
    #[error("`thread_id` must match ^[A-Za-z0-9_-]{{1,64}}$")]
    Thread,
}

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

    /// The scope of these two as callers may write them, each `default` when absent or empty. The one rule of every
    /// way in; whether the caller is that user is decided elsewhere.
    ///
    /// # Errors
    /// The thread is not `^[A-Za-z0-9_-]{1,64}$` (contract 2.1), or the user is too long or holds a control character.
    pub fn parse(user: Option<&str>, thread: Option<&str>) -> Result<Self, ScopeError> {
        let sane_user = |user: &str| user.len() <= LONGEST_USER && !user.contains(char::is_control);
        if user.is_some_and(|user| !sane_user(user)) {
            return Err(ScopeError::User);
        }
        let sane_thread = |thread: &str| {
            let sane = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            thread.len() <= LONGEST_THREAD && thread.bytes().all(sane)
        };
        if thread.is_some_and(|thread| !sane_thread(thread)) {
            return Err(ScopeError::Thread);
        }
        Ok(Self::new(user, thread))
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
        assert_eq!(Scope::parse(None, Some("")).unwrap().to_string(), "default:default");
        assert_eq!(Scope::parse(Some("ann@example.org"), Some("T-1_a")).unwrap().to_string(), "ann@example.org:T-1_a");
    }

    #[test]
    fn odd_threads_and_users_are_refused() {
        // Contract 2.1, `thread_id`.
        for thread in ["a b", "a/b", "a:b", "gr\u{fc}n", &"x".repeat(65)] {
            assert_eq!(Scope::parse(None, Some(thread)), Err(ScopeError::Thread), "{thread}");
        }
        for user in ["a\0b", "a\nb", &"x".repeat(257)] {
            assert_eq!(Scope::parse(Some(user), None), Err(ScopeError::User), "{user:?}");
        }
    }

    #[test]
    fn only_a_sane_id_of_a_caller_is_kept() {
        let longest = "x".repeat(LONGEST_REQUEST_ID);
        for sane in ["req-1/ABC", &longest] {
            assert_eq!(RequestId::from_caller(sane.as_bytes()), Some(RequestId::new(sane)));
        }
        for odd in [&b""[..], b"two words", "gr\u{fc}n".as_bytes(), &[b'x'; LONGEST_REQUEST_ID + 1]] {
            assert_eq!(RequestId::from_caller(odd), None);
        }
    }
}
