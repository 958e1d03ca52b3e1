//! The headers that one call carries besides those configured for everybody (contract chapter 8).
//!
//! Owns their order, their one spelling, who is refused for want of a credential, and which of them decide whether two
//! calls may share an upstream session. Sends nothing: the transports do. A caller without a credential is refused
//! before any traffic, and never falls back on somebody else's (invariant P1). No refusal repeats a value (O3).

mod denied;
mod from_context;
mod overlay;
mod plan;
mod sharing;
mod user_auth;

pub use denied::{Denied, NotSettable};
pub use overlay::override_headers;
pub use plan::CallerHeaders;
pub use sharing::CredentialKey;
