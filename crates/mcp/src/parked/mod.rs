//! Calls that a server of the legacy era asks something in the middle of, and that wait for whoever called to answer
//! (mcp.md 14.3, 14.7).
//!
//! ```text
//!   runs ──► asks ──► parked ──(answers come)──► runs ──► its result
//!              │         └──(nobody comes)──► cancelled
//!              └──(its caller cannot be asked)──► declined, or refused
//! ```
//!
//! A call that is asked something answers `input_required`, as a server of the modern era would, and its request stays
//! open here: [`call`] is one that goes on without anybody waiting for it, [`asking`] what its server asked and what its
//! caller can be asked, [`book`] all that wait in one session. Whoever brings the state back, with answers, goes on
//! with the very same request; it is never sent again (invariant S2). A state is good for one round. What is parked dies
//! with its session, and whoever comes back then is told so.

mod abilities;
mod asking;
mod book;
mod call;
mod url;

pub(crate) use abilities::needs;
#[cfg(test)]
pub(crate) use asking::tests;
pub(crate) use asking::{Asker, Asking, Taken, declined};
pub(crate) use book::{Brought, Parks, missing};
pub(crate) use call::{Hearing, Next, ParkedCall, first_of};
pub(crate) use url::asked_instead;
