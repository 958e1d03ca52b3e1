//! What the tools of a toolset answer: the ordinary driver's three payloads, field by field (contract 6.6, 6.7).
//!
//! Only `structuredContent` is read, never text, except for the first words of an error. Numbers are JSON numbers
//! (architecture.md §9). What a payload holds besides is ignored.

mod cancel;
mod input;
mod payload;
mod status;
mod submit;

pub use cancel::cancel;
pub use input::input;
pub use payload::Misread;
pub use status::{TASK_NOT_FOUND, status};
pub use submit::{Accepted, submit};
