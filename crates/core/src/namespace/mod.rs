//! How many servers are shown as one: what their prompts and resources are called there, and how lists go on
//! (mcp.md §12 and 14.3).
//!
//! A [`Label`] names a server within URIs; [`uri`] puts it before a URI and takes it off again; [`rewrite`] does so in
//! results; [`cursor`] says where each list is to go on. Tools have visible names, see [`crate::tool`]; a prompt has
//! the same prefix, but its name stays otherwise as its server wrote it, since prompts are not shown to model APIs.

mod cursor;
mod label;
mod prompt;
mod rewrite;
mod uri;

pub use cursor::{Left, MergedCursor, Turned};
pub use label::Label;
pub use prompt::{raw_prompt, shown_prompt};
pub use rewrite::{in_elements, in_member, shown_item, shown_result, shown_tool};
pub use uri::{raw_uri, shown_uri};
