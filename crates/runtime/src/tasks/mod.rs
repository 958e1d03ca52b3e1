//! Durable tasks in this replica: what every loop and verb about them shares (contract 6).
//!
//! ```text
//!   api/submit_task ──► note_intent ─► driver.submit ─► record ─► the caller hears the local name
//!                             │              │             └ not stored: the remote is told to cancel, at most 5 s waited
//!                             │              └ no handle: taken back, or marked unknown; never submitted again
//!   api/call_tool ──► the answer tells of a task ─► note_intent ─► record (made; not stored: cancelled there)
//!   api/client_tasks ──► a call was answered that was to be a task ─► note_intent ─► record (made, ended by answered)
//!   poller ──► claim ─► driver.status | cancel | answer ─► settle
//! ```
//!
//! [`road`] leads to a server about a task, with the credentials of contract 6.13; [`upstream`] is one such call for a
//! driver. [`frozen`] holds the configuration that running tasks go by (6.12), [`drivers`] who speaks to servers about
//! tasks.

mod answered;
mod drivers;
mod frozen;
mod made;
mod retention;
mod road;
mod submission;
mod upstream;

pub(crate) use answered::{ANSWERED, AnsweredCalls, answered};
pub(crate) use drivers::{LEGACY, MODERN, ORDINARY};
pub(crate) use frozen::Frozen;
pub(crate) use made::Made;
pub(crate) use road::{About, TaskRoad};
pub(crate) use submission::{Outcome, Submission, random, submit_key};
pub(crate) use upstream::Submitting;
