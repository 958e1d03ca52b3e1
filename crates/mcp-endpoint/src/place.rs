//! Where a request came to: all servers at once, or one of them.

use caribou_core::ids::ServerName;

/// Where a request came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// All servers, their tools by visible names.
    All,
    /// One server, by its own names.
    One(ServerName),
}

impl Place {
    /// The server, if it is one.
    pub(crate) fn server(&self) -> Option<&ServerName> {
        match self {
            Self::All => None,
            Self::One(server) => Some(server),
        }
    }
}
