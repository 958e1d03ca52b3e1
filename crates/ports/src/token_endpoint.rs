//! One request to a token endpoint (contract 7.1). Decides nothing about when, and keeps nothing.

use caribou_core::config::{OAuth, Secret};

use crate::BoxFuture;

/// Asks token endpoints.
pub trait TokenEndpoint: Send + Sync + 'static {
    /// Sends one token request; `refresh_token` is the one to present for the refresh grant. Each operation of it is
    /// bounded by 15 s; the whole answer is not. Never repeated by the implementation.
    fn request(&self, request: TokenRequest) -> BoxFuture<'static, Result<TokenAnswer, TokenRequestError>>;
}

/// What is asked.
#[derive(Clone)]
pub struct TokenRequest {
    /// For the messages.
    pub server: caribou_core::ids::ServerName,
    /// Endpoint, grant, client and the names of the answer's fields.
    pub oauth: std::sync::Arc<OAuth>,
    /// The refresh token to present; `None` for client credentials.
    pub refresh_token: Option<Secret>,
    /// Whether the addresses of a person's own definition are guarded: no private networks (architecture.md §9).
    pub guarded: bool,
    /// Asked directly before the first byte of the form leaves: whether the refresh token may still be presented. A no
    /// means that nothing was sent. `None` = it may (durability.md 3.3, R1).
    pub still_held: Option<StillHeld>,
}

/// Tells whether a presentation is still its holder's to make; asks nobody.
pub type StillHeld = std::sync::Arc<dyn Fn() -> bool + Send + Sync>;

/// A complete and successful answer, read by the rules of contract 7.2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenAnswer {
    /// The rendered header value, `<type> <token>`.
    pub header: Secret,
    /// Seconds until it expires, at least 1.
    pub expires_in: u64,
    /// The successor of the refresh token, if the provider gave one; absent = the old one stays.
    pub refresh_token: Option<Secret>,
}

/// Why there is no token. Nothing in it repeats a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRequestError {
    /// Nothing was sent: the configuration lacks something, or no connection came about.
    #[error("{0}")]
    NotSent(String),
    /// A complete error answer: the provider did not spend the refresh token. `error` is its OAuth code if it gave
    /// one, such as `invalid_grant`.
    #[error("{message}")]
    Refused {
        /// The OAuth error code, if it is one of RFC 6749.
        error: Option<String>,
        /// For people.
        message: String,
    },
    /// A complete, successful answer that holds no usable token: `token_field` missing, an illegal value. The successor
    /// of the refresh token is kept all the same: the one presented may be spent.
    #[error("{message}")]
    Unusable {
        /// For people.
        message: String,
        /// The successor, if the provider gave one.
        refresh_token: Option<Secret>,
    },
    /// The request may have been processed and its answer is lost.
    #[error("{0}")]
    Unknown(String),
}
