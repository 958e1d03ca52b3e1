//! May this command be started (contract chapter 3, as architecture.md §9 extends it).
//!
//! [`judge`] is the one verdict on a stdio server that somebody submits: over the API, or to `caribou check --policy`.
//! It is defence in depth, not a trust boundary: npx and uvx download and run code by design. What it keeps out is
//! code in the arguments and variables themselves, where nobody looks for it. A configuration file may express
//! anything; nothing here runs when a server starts. Pure; refuses or accepts and never fails. Keeps O3: a refusal
//! names our own flags and variables, never a word of the request.
//!
//! Accepted and known: a package runs code; so does any program of `PATH` that is named after `--package` or
//! `--from`; files that an option names (`--userconfig`, `--env-file`, `--python`) and variables that lead a search
//! (`NODE_PATH`, `LD_LIBRARY_PATH`) may do the same.
//!
//! ```
//! use caribou_core::launch::{Allowlist, Refusal, Request, judge};
//!
//! let npx = |args: Vec<&'static str>| Request { command: "npx", args, variables: vec!["API_KEY"] };
//! let allowlist = Allowlist::default();
//!
//! assert_eq!(judge(&npx(vec!["-y", "@scope/server", "-c", "config.json"]), &allowlist), Ok(()));
//! assert_eq!(judge(&npx(vec!["-yc", "touch x"]), &allowlist), Err(Refusal::Flag("-c")));
//! ```

mod allowlist;
mod environment;
mod npx;
mod other;
mod policy;
mod uvx;

#[cfg(test)]
mod vectors;

pub use allowlist::Allowlist;
pub use policy::{Refusal, Request, judge};
