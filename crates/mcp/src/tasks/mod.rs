//! How servers speak about tasks: by the tools of a toolset, by the tasks of revision 2025-11-25, by the extension of
//! the modern era (contract 6.6, mcp.md §9).
//!
//! Owns the words of all three, and the questions that a legacy server asks about its tasks. A driver keeps nothing of
//! a task: what it must remember is stored beside the task. When to ask, and what is stored of an answer, is decided
//! elsewhere.

mod legacy;
mod modern;
mod ordinary;
pub(crate) mod questions;
mod state;
#[cfg(test)]
mod tests;

pub use legacy::LegacyTasks;
pub use modern::ModernTasks;
pub use ordinary::OrdinaryTools;
