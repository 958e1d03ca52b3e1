//! Who calls, and what they may do (architecture.md §2, contract 2.1).
//!
//! Owns every permission decision; how a caller proves who it is stands behind `ports::identity`. The same checks hold
//! on every way in. Keeps invariant P1: nobody acts for a user but that user, or an agent.

mod claims;
mod permission;
mod principal;
mod rate;
mod scopes;

pub use claims::{ClaimFault, ClaimNames};
pub use permission::Refusal;
pub use principal::{Principal, Role, Roles, ToolRules};
pub use rate::{Allowance, Rate};
pub use scopes::{HeldScopes, is_scope};
