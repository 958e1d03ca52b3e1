//! The access token of one upstream connection, kept fresh by whoever owns its chain.

use caribou_core::config::Secret;

use crate::BoxFuture;

/// The access tokens of one connection. Shared by all sessions with it.
pub trait AccessTokens: Send + Sync + 'static {
    /// A token that is not expiring, refreshed first where needed. Cheap while one is valid. Dropping the future does
    /// not cancel a refresh that others wait for.
    fn current(&self) -> BoxFuture<'_, Result<AccessToken, NoToken>>;

    /// The server answered this token with 401: it is not handed out again. A later one is left alone.
    fn rejected(&self, token: &AccessToken);
}

/// One access token, rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessToken {
    /// The whole value of `Authorization`, such as `Bearer ...`; legal as a header (contract 7.2, 8.3).
    pub header: Secret,
    /// Which one of the connection this is; a later one has a larger number.
    pub serial: u64,
}

/// Why there is no token. Names the server and what to do; holds no secret and nothing a provider said unmasked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NoToken {
    /// What happened, for people.
    pub message: String,
    /// Whether a person must act (a new refresh token, another client); else it is tried again.
    pub needs_person: bool,
}
