//! Interceptors around calls: the operator's own code, in the order of `mcpInterceptors` (contract 8.6).
//!
//! ```text
//!   caller → 1.before → 2.before → … → server → … → 2.after → 1.after → caller
//!                          │ answers                    ▲
//!                          └────────────────────────────┘ 1.after still sees it
//! ```
//!
//! [`making`] builds one instance of each entry for a server when the server is discovered, so that one which is never
//! discovered never runs them; another list of entries makes every server another one, and their instances with it.
//! [`chain`] asks them and lays what they say over the call; the later one stands closer to the server, so its header
//! wins. An entry that leads nowhere is warned about and left out, as the contract says. One that is there and cannot
//! be asked fails the call: before the call nothing was sent, after it the outcome stays unknown to the caller
//! (invariant S2). An interceptor is shown only those secrets of the request that its entry lists (invariant O3).

mod chain;
mod making;
mod refusal;

pub(crate) use chain::{Chain, Flow, Passage};
pub(crate) use making::Interception;
