//! Who asks for a verb, and by which door; what it may not keep.

use std::fmt;

use caribou_core::config::Secret;
use caribou_core::identity::Principal;

/// Who asks for a verb.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who it is.
    pub principal: Principal,
    /// The way it came in.
    pub door: Door,
}

impl Caller {
    /// The program itself, which may everything.
    pub fn local(door: Door) -> Self {
        Self { principal: Principal::local(), door }
    }
}

/// A way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// REST.
    Rest,
    /// gRPC.
    Grpc,
    /// MCP.
    Mcp,
    /// A command of this program.
    Cli,
    /// A program that embeds the runtime.
    Library,
}

impl Door {
    /// Its word in audit rows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::Grpc => "grpc",
            Self::Mcp => "mcp",
            Self::Cli => "cli",
            Self::Library => "library",
        }
    }
}

/// Secrets of one request, by key (contract 8.5). Only strings can be in it; a malformed carrier is empty.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RequestSecrets(pub Vec<(String, Secret)>);

impl fmt::Debug for RequestSecrets {
    /// Not even the keys: callers choose them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestSecrets({})", self.0.len())
    }
}
