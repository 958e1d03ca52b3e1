//! Who asks for a verb, and by which door; what it may not keep.

use std::fmt;

use caribou_core::bounds::{MAX_REQUEST_SECRET_BYTES, MAX_REQUEST_SECRETS};
use caribou_core::config::Secret;
use caribou_core::failure::Code;
use caribou_core::identity::Principal;
use caribou_core::ids::RequestId;
use caribou_core::ids::Scope;

use crate::error::VerbError;

/// Who asks for a verb.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who it is.
    pub principal: Principal,
    /// The way it came in.
    pub door: Door,
    /// Names what it asks for in audit rows; `None` = it has no name but that of a call.
    pub request_id: Option<RequestId>,
}

impl Caller {
    /// The program itself, which may everything.
    pub fn local(door: Door) -> Self {
        Self { principal: Principal::local(), door, request_id: None }
    }

    /// The scope of a request that names these two: its own user when it names none.
    ///
    /// # Errors
    /// `invalid`: one of them is no part of a scope. `denied`: it may not act for that user.
    pub fn scope(&self, user: Option<&str>, thread: Option<&str>) -> Result<Scope, VerbError> {
        let named = Scope::parse(user, thread).map_err(|error| VerbError::new(Code::Invalid, error.to_string()))?;
        Ok(Scope { user: self.principal.acts_for(user)?, thread: named.thread })
    }

    /// Whether it may use the tool of this visible name.
    pub(crate) fn may_use(&self, visible_name: &str) -> bool {
        self.principal.uses(visible_name).is_ok()
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

impl RequestSecrets {
    /// Whether they are few and short enough (invariant B1).
    ///
    /// # Errors
    /// `invalid`; repeats neither keys nor values.
    pub(crate) fn check(&self) -> Result<(), VerbError> {
        let fits = |text: &str| text.len() <= MAX_REQUEST_SECRET_BYTES;
        if self.0.len() <= MAX_REQUEST_SECRETS && self.0.iter().all(|(key, secret)| fits(key) && fits(secret.expose()))
        {
            return Ok(());
        }
        let detail = format!(
            "the secrets of a request may be {MAX_REQUEST_SECRETS} in number and of {MAX_REQUEST_SECRET_BYTES} bytes each"
        );
        Err(VerbError::new(Code::Invalid, detail))
    }
}

impl fmt::Debug for RequestSecrets {
    /// Not even the keys: callers choose them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestSecrets({})", self.0.len())
    }
}
