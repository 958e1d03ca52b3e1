//! Why a call is refused for its credentials. Names servers, users and keys, and never a value (invariant O3).

use crate::headers::IllegalHeader;

/// Why a call is not made. Nothing was sent for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The user has no credential of its own, and there is no other that it may use (contract 8.4).
    #[error(
        "No credential is configured for user `{user}` on server `{server}`; an operator has to add one under \
         `user_auth.users`"
    )]
    NoCredential {
        /// The server.
        server: String,
        /// The user as the call names it, to be copied into the configuration.
        user: String,
    },
    /// The user's credential cannot stand in a header (contract 8.3).
    #[error("the credential of user `{user}` for server `{server}` cannot be sent: {reason}")]
    IllegalCredential {
        /// The server.
        server: String,
        /// The user.
        user: String,
        /// What is wrong with it.
        reason: IllegalHeader,
    },
    /// The request lacks secrets that the server needs (contract 8.5).
    #[error(
        "server `{server}` needs secrets that this request lacks: {}; send them in `config.context.secrets`",
        .keys.join(", ")
    )]
    MissingSecrets {
        /// The server.
        server: String,
        /// Only the keys that are missing, sorted.
        keys: Vec<String>,
    },
    /// A secret of the request cannot stand in a header (contract 8.3).
    #[error("the secret `{key}` of this request cannot be sent to server `{server}`: {reason}")]
    IllegalSecret {
        /// The server.
        server: String,
        /// The key.
        key: String,
        /// What is wrong with it.
        reason: IllegalHeader,
    },
}

/// Why an interceptor cannot set a header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSettable {
    /// It could not be sent (contract 8.3).
    #[error("header {name:?}: {reason}")]
    Illegal {
        /// Its name.
        name: String,
        /// What is wrong with it.
        reason: IllegalHeader,
    },
    /// Caribou writes it itself.
    #[error("header {name:?}: Caribou writes it itself")]
    OfProtocol {
        /// Its name.
        name: String,
    },
}
