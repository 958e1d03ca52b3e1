//! Who a caller is, by what it presents.

use caribou_core::config::Secret;
use caribou_core::identity::Principal;

use crate::BoxFuture;

/// Tells callers apart. One of `auth.mode`: nobody is asked, keys, tokens.
pub trait Authenticator: Send + Sync + 'static {
    /// The caller that presents this bearer credential, or none at all. Answers from memory where it can.
    fn authenticate(&self, bearer: Option<Secret>) -> BoxFuture<'_, Result<Principal, Unauthenticated>>;
}

/// Why nobody was recognised. Never repeats the credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unauthenticated {
    /// Nothing was presented.
    #[error("no credential: send `Authorization: Bearer ...`")]
    Missing,
    /// Unknown, revoked, expired, not for us, or malformed; the text says which as far as a stranger may know.
    #[error("{0}")]
    Refused(String),
    /// Nobody can tell now: keys or the key set cannot be read. Nobody is let in.
    #[error("callers cannot be told apart now: {0}")]
    Unavailable(String),
}
